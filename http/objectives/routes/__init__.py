"""Routes of objectives: handlers, and functions from row to schema."""
