"""Routes and screens of monitors."""
