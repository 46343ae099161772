"""The loops that move the house: each a trivial loop around a bounded `pass_once`."""
