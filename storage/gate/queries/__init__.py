"""Read-only SQL of the release gate."""
