"""The services of a project, those with the least budget left first."""
