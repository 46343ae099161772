"""Long-poll coordinator: one database query per region at a time.

The other claims of the region wait for their turn. Without work, the database is queried twice a
second per region, regardless of the number of agents. A claim that finds work is answered
immediately and passes its turn on. No waiting claim occupies a connection.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, TypeVar

import trio

from .errors import Problem

T = TypeVar("T")

LOOK_SECONDS: Final = 0.5
# Claims that can wait in this process; further ones are refused with Retry-After.
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
        """Repeats `look` until it finds work; empty after `seconds` or if the process stops.

        Raises: Problem rate_limited if too many claims wait.
        """
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
                # The commit of `look` leases the jobs, so no checkpoint may follow before the
                # return.
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
    """Returns whether the turn was acquired. Acquires a free turn even if `until` is over."""
    try:
        turn.acquire_nowait()
    except trio.WouldBlock:
        with trio.move_on_at(until):
            await turn.acquire()
            return True
        return False
    return True
