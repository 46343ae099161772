"""Credentials of people: passwords, single sign-on and CSRF protection."""
