"""Screens of maintenance."""
