"""Pure rules of the release gate: no clock, randomness, SQL or I/O; `now` is an argument."""
