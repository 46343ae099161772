"""OpenID Connect client and settings."""
