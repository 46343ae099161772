"""What global admins set for the whole installation."""
