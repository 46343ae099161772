"""Read-only SQL of scheduling."""
