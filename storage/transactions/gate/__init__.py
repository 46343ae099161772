"""What is decided by a release gate, and by what: evaluations, policies, overrides."""
