"""Type-ahead fields: their values, and the objects of a project that they offer."""
