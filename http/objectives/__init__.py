"""Routes and screens of objectives."""
