"""Transactions of accounts: one unit of work per function."""
