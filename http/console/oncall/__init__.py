"""On call: who is, the calendar of it, and the forms of schedules and ladders."""
