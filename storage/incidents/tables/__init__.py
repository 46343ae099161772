"""Locks and writes of the incident tables, and the reads that a write needs."""
