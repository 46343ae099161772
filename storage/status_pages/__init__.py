"""Storage of status pages."""
