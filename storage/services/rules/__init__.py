"""Pure rules of services: no clock, randomness, SQL or I/O; `now` is an argument."""
