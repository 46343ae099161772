"""Pure rules of notifications: no clock, randomness, SQL or I/O; `now` is an argument."""
