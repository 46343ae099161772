"""The route tables: what can be asked, by whom, and what answers."""
