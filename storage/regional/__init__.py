"""Monitors in several regions: one object of a composite and a member for each region."""
