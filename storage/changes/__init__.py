"""What is stored of changes."""
