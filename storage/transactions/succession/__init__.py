"""A service takes the place of a monitor."""
