"""Locks and writes of the tables of accounts, and the reads that a write needs."""
