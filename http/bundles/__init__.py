"""Routes and screens of bundles."""
