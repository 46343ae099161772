"""Locks and writes of the tables of services, and the reads that a write needs."""
