"""Locks and writes of the tables of alerting, and the reads that a write needs."""
