"""Transactions of status pages: one unit of work per function."""
