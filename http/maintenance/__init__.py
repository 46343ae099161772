"""Routes and screens of maintenance."""
