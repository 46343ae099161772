"""Routes and screens of retirement."""
