"""Storage of objectives: targets, burn rules and their notifications."""
