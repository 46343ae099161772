"""Storage of notifications."""
