"""Routes of gate: handlers, and functions from row to schema."""
