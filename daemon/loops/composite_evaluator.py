"""Looks at composites when they are due, and at once when a member's status has changed.

It follows the ticker: windows are written before they are answered, by whichever process comes
first; the ledger takes one answer.
"""

from collections.abc import Callable
from typing import Final

from ...storage.evaluator import Evaluator
from ...storage.rules.instant import Instant

# How long a member's change of status waits at most before what is made of it is looked at.
PAUSE_SECONDS: Final = 0.5
# A pass is bounded; what is left is due at once.
ROUNDS_MOST: Final = 20


class Composer:
    def __init__(self, evaluator: Evaluator, clock: Callable[[], Instant]) -> None:
        self.evaluator = evaluator
        self._clock = clock

    async def pass_once(self) -> int:
        """How many were looked at. A composite's own change calls for what is made of it, which is
        looked at in the same pass."""
        total = 0
        for _ in range(ROUNDS_MOST):
            count = await self.evaluator.evaluate_due(self._clock())
            total += count
            if not count:
                break
        return total
