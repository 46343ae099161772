"""The report of what was promised and what was kept, by service and by monitor."""
