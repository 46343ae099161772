"""Read-only SQL of services."""
