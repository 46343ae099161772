"""Routes of bundles: handlers, and functions from row to schema."""
