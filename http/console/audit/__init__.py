"""Who wrote what."""
