"""Locks and writes of the gate tables, and the reads that a write needs."""
