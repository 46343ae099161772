"""How long to wait before asking again what was not answered: longer each time, never for long, and
not all agents at the same instant."""

from collections.abc import Callable
from random import random
from typing import Final

FIRST_SECONDS: Final = 1.0
MOST_SECONDS: Final = 30.0


class Backoff:
    """`chance` gives numbers in [0, 1)."""

    def __init__(self, chance: Callable[[], float] = random) -> None:
        self._chance = chance
        self._failures = 0

    def reset(self) -> None:
        self._failures = 0

    def seconds(self) -> float:
        """To be waited now, between half of the step and all of it."""
        step = min(FIRST_SECONDS * 2.0 ** min(self._failures, 10), MOST_SECONDS)
        self._failures += 1
        return max(step * (0.5 + self._chance() / 2), FIRST_SECONDS)
