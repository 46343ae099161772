"""Locks and writes of the tables of maintenance, and the reads that a write needs."""
