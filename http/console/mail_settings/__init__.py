"""The mail server and where links lead."""
