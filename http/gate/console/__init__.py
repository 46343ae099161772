"""Screens of gate."""
