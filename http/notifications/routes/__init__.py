"""Routes of notifications: handlers, and functions from row to schema."""
