"""Backoff between repeated requests: exponential, bounded, with jitter."""

from collections.abc import Callable
from random import random
from typing import Final

FIRST_SECONDS: Final = 1.0
MOST_SECONDS: Final = 30.0


class Backoff:
    """Exponential backoff. `chance` returns numbers in [0, 1)."""

    def __init__(self, chance: Callable[[], float] = random) -> None:
        self._chance = chance
        self._failures = 0

    def reset(self) -> None:
        self._failures = 0

    def seconds(self) -> float:
        """Returns the next delay: half of the step to the whole step, at least FIRST_SECONDS."""
        step = min(FIRST_SECONDS * 2.0 ** min(self._failures, 10), MOST_SECONDS)
        self._failures += 1
        return max(step * (0.5 + self._chance() / 2), FIRST_SECONDS)
