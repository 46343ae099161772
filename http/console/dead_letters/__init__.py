"""What could not be delivered, for those who run the installation."""
