"""Routes of agents: handlers, and functions from row to schema."""
