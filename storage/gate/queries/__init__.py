"""Read-only SQL of gate."""
