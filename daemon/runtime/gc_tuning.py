"""Tuning of the garbage collector, so that collections do not block the event loop.

Objects that exist when the daemon is ready (modules, classes, routes) live until it ends. They are
frozen, so that no collection visits them again. Later collections run less often than with the
defaults of Python, which suit programs without an event loop. They find little garbage, because
results and requests contain no reference cycles of Leadline.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

# Net allocations per collection of generation 0, and collections per collection of the next one.
YOUNGEST: Final = 10_000
IMPORTING: Final = 20_000
MIDDLE: Final = 20
OLDEST: Final = 50


@contextmanager
def importing() -> Iterator[None]:
    """Imports modules inside the context with few collections, which would visit every class again
    and again: a tenth of the CPU of the import of a daemon. Without any, an agent uses 1 MiB more.
    """
    before = gc.get_threshold()
    gc.set_threshold(IMPORTING, *before[1:])
    try:
        yield
    finally:
        # Later collections visit only later objects.
        gc.freeze()
        gc.set_threshold(*before)


def set_aside() -> None:
    """Freezes the existing objects. Call it once, after all permanent objects were created."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNGEST, MIDDLE, OLDEST)
