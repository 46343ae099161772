"""JSON bodies of services."""
