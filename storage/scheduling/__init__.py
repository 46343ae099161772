"""What is stored of scheduling."""
