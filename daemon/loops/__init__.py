"""Loops of the daemon: each is a trivial loop around a bounded `pass_once`."""
