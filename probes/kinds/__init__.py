"""The protocols, a file each, all with the same signature."""
