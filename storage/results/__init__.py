"""What is stored of results."""
