"""Read-only SQL of figures."""
