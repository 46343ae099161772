"""Locks and writes of the tables of incidents, and the reads that a write needs."""
