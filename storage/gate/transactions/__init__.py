"""Transactions of the release gate: one unit of work per function."""
