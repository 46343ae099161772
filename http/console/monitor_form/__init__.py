"""The form of a monitor. Its fields come from the probes' SPECs: a new kind needs no new form."""
