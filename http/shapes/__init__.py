"""Bodies on the wire, a family a file."""
