"""Screens of agents."""
