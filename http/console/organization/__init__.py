"""Who belongs to an organization: people and tokens."""
