"""What is stored of oncall."""
