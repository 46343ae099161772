"""Transactions of gate: one unit of work per function."""
