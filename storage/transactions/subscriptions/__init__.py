"""People and machines that want to be told of a status page, and that are told."""
