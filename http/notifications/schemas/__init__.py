"""JSON bodies of notifications."""
