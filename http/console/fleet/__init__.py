"""What probes, where, and with whose token, for those who run the installation."""
