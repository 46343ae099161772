"""Who asks: sessions, tokens and passwords, turned into a principal."""
