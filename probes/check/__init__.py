"""Checks, conditions, specs, targets, results and the registry of monitor types. Pure."""
