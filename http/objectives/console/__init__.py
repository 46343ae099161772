"""Screens of objectives."""
