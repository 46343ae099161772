"""Read-only SQL of status pages."""
