"""Configuration: its schema, loading, roles, HTTP options, egress and logs."""
