"""Transactions of notifications: one unit of work per function."""
