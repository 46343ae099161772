"""What a project's editors do with services."""
