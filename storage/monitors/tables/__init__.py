"""Locks and writes of the tables of monitors, and the reads that a write needs."""
