"""Transactions of on-call: one unit of work per function."""
