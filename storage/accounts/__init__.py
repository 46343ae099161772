"""Storage of accounts."""
