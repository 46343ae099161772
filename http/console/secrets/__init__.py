"""The page of a project's secrets."""
