"""Storage of the release gate: policies, decisions and overrides."""
