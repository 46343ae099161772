"""Configuration: its schema, loading, roles, egress and logs."""
