"""Routes and screens of changes."""
