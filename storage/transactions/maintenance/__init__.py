"""Maintenance is announced, cut short, annulled; and checks are made once it is over."""
