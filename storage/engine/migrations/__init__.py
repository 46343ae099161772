"""Forward-only SQL, applied in the order of the file names."""
