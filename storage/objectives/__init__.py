"""What is stored of objectives."""
