"""Locks and writes of the service tables, and the reads that a write needs."""
