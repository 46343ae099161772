"""Locks and writes of the tables of gate, and the reads that a write needs."""
