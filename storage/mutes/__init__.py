"""Storage of mutes: alerts of a monitor, a service or a set of labels that wait."""
