"""One asynchronous transaction, run end to end."""
