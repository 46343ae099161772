"""Transactions of oncall: one unit of work per function."""
