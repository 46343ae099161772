"""Routes and screens of accounts."""
