"""Writing a project's secrets, referring to them, and sealing all that is sealed anew."""
