"""The verified backups of the schedule."""
