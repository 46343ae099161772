"""Pure values: instants, spans, SLI arithmetic, names, refusals, tokens."""
