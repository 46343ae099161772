"""Storage of alerting: outages, service episodes and paging delegation."""
