"""Read-only questions, which may join."""
