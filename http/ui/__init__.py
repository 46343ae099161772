"""Shared parts of screens: templates, formatting, form helpers and static files."""
