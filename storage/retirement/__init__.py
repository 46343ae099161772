"""What is stored of retirement."""
