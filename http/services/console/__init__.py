"""Screens of services."""
