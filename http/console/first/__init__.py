"""The first minute of an installation: one field, one button."""
