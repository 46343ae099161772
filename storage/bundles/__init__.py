"""Storage of bundles."""
