"""Transactions of retirement: one unit of work per function."""
