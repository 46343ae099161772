"""Screens of incidents."""
