"""What is stored of maintenance."""
