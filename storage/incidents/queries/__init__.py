"""Read-only SQL of incidents."""
