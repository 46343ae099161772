"""Keeps the collector of cycles from holding the loop.

What is there when the daemon is ready (modules, classes, routes) stays until it ends: it is set
aside, so that no collection walks over it again. Later collections come less often than Python's
defaults, which are made for programs without a loop to hold; what they find is little, as results
and requests hold no cycles of ours.
"""

import gc
from typing import Final

# Net allocations before a collection of the youngest; each next generation after so many of those.
YOUNGEST: Final = 10_000
MIDDLE: Final = 20
OLDEST: Final = 50


def set_aside() -> None:
    """Call once, when everything that stays has been made."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNGEST, MIDDLE, OLDEST)
