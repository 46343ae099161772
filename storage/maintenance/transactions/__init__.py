"""Transactions of maintenance: one unit of work per function."""
