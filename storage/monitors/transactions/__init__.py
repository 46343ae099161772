"""Transactions of monitors: one unit of work per function."""
