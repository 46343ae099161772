"""The edit form of monitors."""
