"""Pure rules of status pages: no clock, randomness, SQL or I/O; `now` is an argument."""
