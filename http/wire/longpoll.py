"""Claims that wait: of those that would find the same one looks at a time, and the others wait for
their turn.

However many agents poll, the store is asked twice a second and region. What is found is answered at
once and the next may look; nobody holds a connection while it waits.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, TypeVar

import trio

from .errors import Problem

T = TypeVar("T")

LOOK_SECONDS: Final = 0.5
# Claims that may wait in this process; who comes then is told to come again.
WAITING_MOST: Final = 2_000
TURNS_MOST: Final = 1_000


@dataclass(slots=True)
class LongPoll:
    stopping: trio.Event
    waiting: int = 0
    _turns: dict[str, trio.Lock] = field(default_factory=dict)

    async def wait_for(
        self, turn: str, seconds: float, look: Callable[[], Awaitable[list[T]]]
    ) -> list[T]:
        """What `look` finds, asked until it finds something; empty after so long, or when the
        process stops. Raises: Problem rate_limited if too many wait."""
        if self.waiting >= WAITING_MOST:
            raise Problem("rate_limited", headers={"Retry-After": "1"})
        self.waiting += 1
        try:
            return await self._wait_for(turn, trio.current_time() + seconds, look)
        finally:
            self.waiting -= 1

    async def _wait_for(
        self, name: str, until: float, look: Callable[[], Awaitable[list[T]]]
    ) -> list[T]:
        turn = self._turn_of(name)
        while await _has_turn(turn, until):
            try:
                # What was found is leased with the commit: nobody may be called away between.
                found = await look()
                if found or self.stopping.is_set() or trio.current_time() >= until:
                    return found
                with trio.move_on_at(min(until, trio.current_time() + LOOK_SECONDS)):
                    await self.stopping.wait()
            finally:
                turn.release()
        return []

    def _turn_of(self, name: str) -> trio.Lock:
        if name not in self._turns and len(self._turns) >= TURNS_MOST:
            self._turns = {n: lock for n, lock in self._turns.items() if lock.locked()}
        return self._turns.setdefault(name, trio.Lock())


async def _has_turn(turn: trio.Lock, until: float) -> bool:
    """Who waits for nothing looks once too, where nobody else does."""
    try:
        turn.acquire_nowait()
    except trio.WouldBlock:
        with trio.move_on_at(until):
            await turn.acquire()
            return True
        return False
    return True
