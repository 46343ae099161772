"""What is stored of bundles."""
