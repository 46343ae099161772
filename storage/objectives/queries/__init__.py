"""Read-only SQL of objectives."""
