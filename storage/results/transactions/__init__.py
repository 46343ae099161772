"""Transactions of results: one unit of work per function."""
