"""Pure rules of gate: no clock, randomness, SQL or I/O; `now` is an argument."""
