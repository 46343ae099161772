"""Commands of people and their scripts, signed in with a profile. They use the public API only."""
