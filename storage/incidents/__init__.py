"""What is stored of incidents."""
