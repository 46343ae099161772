"""Routes of maintenance: handlers, and functions from row to schema."""
