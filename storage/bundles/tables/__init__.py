"""Locks and writes of the tables of bundles, and the reads that a write needs."""
