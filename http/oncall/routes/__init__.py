"""Routes of oncall: handlers, and functions from row to schema."""
