"""Pure rules of alerting: no clock, randomness, SQL or I/O; `now` is an argument."""
