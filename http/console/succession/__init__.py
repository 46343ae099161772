"""The page on which a service takes a monitor's place."""
