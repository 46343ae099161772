"""The release gate for people: what it said and why, its policies, and who let through what."""
