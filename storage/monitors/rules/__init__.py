"""Pure rules of monitors: no clock, randomness, SQL or I/O; `now` is an argument."""
