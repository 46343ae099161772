"""Routes of monitors: handlers, and functions from row to schema."""
