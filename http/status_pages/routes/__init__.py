"""Routes of status pages: handlers, and functions from row to schema."""
