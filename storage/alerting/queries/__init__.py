"""Read-only SQL of alerting."""
