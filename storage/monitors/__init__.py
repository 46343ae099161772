"""Storage of monitors."""
