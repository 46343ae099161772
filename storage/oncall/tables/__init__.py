"""Locks and writes of the on-call tables, and the reads that a write needs."""
