"""JSON bodies of status pages."""
