"""Screens of notifications."""
