"""Pure rules of incidents: no clock, randomness, SQL or I/O; `now` is an argument."""
