"""What is stored of figures."""
