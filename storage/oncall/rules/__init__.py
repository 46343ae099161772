"""Pure rules of on-call: no clock, randomness, SQL or I/O; `now` is an argument."""
