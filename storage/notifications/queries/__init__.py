"""Read-only SQL of notifications."""
