"""Screens of changes."""
