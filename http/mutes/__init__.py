"""Mutes of monitors, services and matching labels: API and screen."""
