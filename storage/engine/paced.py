"""Long computations that do not block the event loop."""

from collections.abc import Iterable
from typing import TypeVar

import trio

T = TypeVar("T")


async def paced(items: Iterable[T]) -> list[T]:
    """Returns the items of an iterator that computes each of them, with a checkpoint after each."""
    found = []
    for item in items:
        found.append(item)
        await trio.lowlevel.checkpoint()
    return found
