"""Pure rules of accounts: no clock, randomness, SQL or I/O; `now` is an argument."""
