"""What is stored of services."""
