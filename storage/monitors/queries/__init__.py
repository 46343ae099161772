"""Read-only SQL of monitors."""
