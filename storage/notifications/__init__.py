"""What is stored of notifications."""
