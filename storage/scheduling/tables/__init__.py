"""Locks and writes of the tables of scheduling, and the reads that a write needs."""
