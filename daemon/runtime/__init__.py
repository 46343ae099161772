"""What runs loops: supervisor, limits, loop runner, wake event, sd_notify."""
