"""Pure rules of oncall: no clock, randomness, SQL or I/O; `now` is an argument."""
