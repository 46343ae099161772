"""Routes and screens of incidents."""
