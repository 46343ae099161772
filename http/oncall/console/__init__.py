"""Screens of oncall."""
