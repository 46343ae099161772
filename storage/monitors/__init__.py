"""What is stored of monitors."""
