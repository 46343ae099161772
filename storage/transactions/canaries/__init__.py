"""Runs of canaries: who has one, and which window was refused."""
