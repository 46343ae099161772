"""Transactions of alerting: one unit of work per function."""
