"""Read-only SQL of oncall."""
