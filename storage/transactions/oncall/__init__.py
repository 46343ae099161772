"""Ladders and schedules change, and the people that they name are found."""
