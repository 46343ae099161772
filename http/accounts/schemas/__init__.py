"""JSON bodies of accounts."""
