"""Announced maintenance of a project: drawn, planned, ended, and the past only after a look."""
