"""Locks and writes of the tables of results, and the reads that a write needs."""
