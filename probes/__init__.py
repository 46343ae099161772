"""Probes and senders: one runner, and one module per protocol. Imports no other layer."""
