"""JSON bodies of monitors."""
