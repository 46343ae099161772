"""Routes of home: handlers, and functions from row to schema."""
