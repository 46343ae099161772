"""How people, organizations and tokens come and go."""
