"""Pure: checks, conditions, specs, targets, results and the registry of kinds."""
