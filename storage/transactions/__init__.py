"""Verb phrases: each locks, loads, decides by the rules, writes, and tells."""
