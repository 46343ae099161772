"""A monitor's page: is it fine, since when, why, and the evidence; and what may be done to it."""
