"""Shell of the console: its preferences, settings list, settings index and error pages."""
