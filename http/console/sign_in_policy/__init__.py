"""How people sign in, for those who run the installation."""
