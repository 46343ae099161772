"""Transactions of incidents: one unit of work per function."""
