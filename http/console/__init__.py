"""What the one who runs it sees: a folder a screen, and the plots they share."""
