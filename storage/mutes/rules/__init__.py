"""Pure rules of mutes: no clock, randomness, SQL or I/O; `now` is an argument."""
