"""Bundles in the background: their directories, and their application."""
