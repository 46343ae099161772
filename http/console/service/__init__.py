"""A service: is it fine, what is left of its budget, and what it is made of."""
