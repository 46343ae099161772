"""Async canary: an asynchronous transaction, run end to end."""
