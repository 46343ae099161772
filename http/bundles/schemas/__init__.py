"""JSON bodies of bundles."""
