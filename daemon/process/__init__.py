"""Daemon process: wiring, start and metrics."""
