"""Screens of single sign-on: the provider, and the roles of its groups."""
