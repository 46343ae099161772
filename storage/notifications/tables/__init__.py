"""Locks and writes of the tables of notifications, and the reads that a write needs."""
