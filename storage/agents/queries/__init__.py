"""Read-only SQL of agents."""
