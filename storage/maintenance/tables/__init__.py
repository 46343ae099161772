"""Locks and writes of the maintenance tables, and the reads that a write needs."""
