"""Screens of status pages."""
