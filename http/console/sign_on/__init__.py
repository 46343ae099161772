"""How people sign in elsewhere."""
