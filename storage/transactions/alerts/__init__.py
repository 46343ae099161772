"""What follows from a change of status: whom it is told to, when, and how often."""
