"""The page of a project's notification channels."""
