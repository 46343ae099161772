"""Transactions of objectives: one unit of work per function."""
