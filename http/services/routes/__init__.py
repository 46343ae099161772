"""Routes of services: handlers, and functions from row to schema."""
