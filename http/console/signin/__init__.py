"""Signing in by a form, by the very rules of the API."""
