"""Routes and screens of alerting."""
