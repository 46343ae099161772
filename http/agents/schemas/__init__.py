"""JSON bodies of agents."""
