"""Routes and screens of status pages."""
