"""Routes and screens of services."""
