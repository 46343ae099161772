"""Transactions of scheduling: one unit of work per function."""
