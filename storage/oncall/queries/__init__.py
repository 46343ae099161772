"""Read-only SQL of on-call."""
