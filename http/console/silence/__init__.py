"""The page where everything is silenced."""
