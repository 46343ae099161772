"""The form of what the installation looks like to the public."""
