"""The agent protocol and its sealed envelope."""
