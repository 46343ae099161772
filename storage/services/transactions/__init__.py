"""Transactions of services: one unit of work per function."""
