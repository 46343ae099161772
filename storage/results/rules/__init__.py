"""Pure rules of results: no clock, randomness, SQL or I/O; `now` is an argument."""
