"""One's own account: the password, the second factor, the sessions."""
