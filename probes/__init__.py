"""Reaches out: one runner, one file a protocol. Imports nothing else of the house."""
