"""Routes and screens of notifications."""
