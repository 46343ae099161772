"""How monitors come, change and go, each with the term that its schedule runs by."""
