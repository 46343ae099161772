"""Runtime of the loops: supervisor, limits, wake event, stop signal, sd_notify."""
