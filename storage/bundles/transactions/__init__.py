"""Transactions of bundles: one unit of work per function."""
