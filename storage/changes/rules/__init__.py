"""Pure rules of changes: no clock, randomness, SQL or I/O; `now` is an argument."""
