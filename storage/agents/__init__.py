"""What is stored of agents."""
