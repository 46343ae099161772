"""The daemon process: wiring, start and metrics."""
