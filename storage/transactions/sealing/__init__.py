"""How time is closed: the fence, the verdicts behind it, the figures, and what restates them."""
