"""Locks and writes of the tables of agents, and the reads that a write needs."""
