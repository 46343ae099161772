"""Read-only SQL of accounts."""
