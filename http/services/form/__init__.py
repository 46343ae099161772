"""The edit form of services."""
