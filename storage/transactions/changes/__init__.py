"""What pipelines tell of changes."""
