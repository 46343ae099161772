"""Storage of changes: deploys, rollbacks and flags with their phases."""
