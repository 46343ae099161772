"""Storage of services: declarations, dependencies, health and sealed time."""
