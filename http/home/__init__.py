"""Screens and routes that combine features: overview, search, first monitor."""
