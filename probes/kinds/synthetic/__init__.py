"""Scenarios: a sequence of HTTP requests that can use values of earlier responses."""
