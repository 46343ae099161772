"""Pure rules of bundles: no clock, randomness, SQL or I/O; `now` is an argument."""
