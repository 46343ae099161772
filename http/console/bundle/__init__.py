"""The page of a project as a bundle."""
