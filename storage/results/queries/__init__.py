"""Read-only SQL of results."""
