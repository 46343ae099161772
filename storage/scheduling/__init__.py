"""Storage of scheduling."""
