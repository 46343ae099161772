"""Routes of changes: handlers, and functions from row to schema."""
