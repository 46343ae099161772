"""Agent protocol and its encrypted envelope."""
