"""Storage of incidents: records, updates, escalation state and postmortems."""
