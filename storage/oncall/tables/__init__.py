"""Locks and writes of the tables of oncall, and the reads that a write needs."""
