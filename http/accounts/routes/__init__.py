"""Routes of accounts: handlers, and functions from row to schema."""
