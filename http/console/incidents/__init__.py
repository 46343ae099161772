"""A project's incidents, and one of them with all that was said and done about it."""
