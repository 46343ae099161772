"""Read-only SQL of changes."""
