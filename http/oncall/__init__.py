"""Routes and screens of oncall."""
