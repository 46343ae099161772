"""Routes of incidents: handlers, and functions from row to schema."""
