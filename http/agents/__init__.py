"""Routes and screens of agents."""
