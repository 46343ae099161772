"""Locks and writes of the tables of status pages, and the reads that a write needs."""
