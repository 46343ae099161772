"""What is stored of gate."""
