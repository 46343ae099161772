"""The key of a row: project and number."""

Key = tuple[int, int]
