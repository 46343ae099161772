"""What is stored of alerting."""
