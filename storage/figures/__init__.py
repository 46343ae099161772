"""Storage of figures: rolled-up time of monitors, and repairs of it."""
