"""Locks and writes of the tables of objectives, and the reads that a write needs."""
