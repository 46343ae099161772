"""Pure rules of scheduling: no clock, randomness, SQL or I/O; `now` is an argument."""
