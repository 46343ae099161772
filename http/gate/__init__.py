"""Routes and screens of gate."""
