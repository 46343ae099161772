"""Storage of agents."""
