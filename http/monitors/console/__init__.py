"""Screens of monitors."""
