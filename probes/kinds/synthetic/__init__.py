"""Scenarios: a few HTTP requests in a row, with what is taken from one answer for the next."""
