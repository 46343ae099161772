"""The overview of a project: is everything fine, what needs attention, and every monitor."""
