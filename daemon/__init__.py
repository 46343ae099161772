"""Keeps it running: configuration, wiring, supervision, the loops and the command line."""
