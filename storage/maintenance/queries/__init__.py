"""Read-only SQL of maintenance."""
