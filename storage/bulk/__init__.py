"""Actions on many monitors, at once or in the background."""
