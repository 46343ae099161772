"""Transactions of agents: one unit of work per function."""
