"""Pure rules: no clock, no randomness, no SQL, no I/O; `now` is always an argument."""
