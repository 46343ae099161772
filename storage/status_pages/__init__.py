"""What is stored of status pages."""
