"""The people of the installation."""
