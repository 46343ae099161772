"""One place owns lifetimes: children are begun in order, begun again when they fail, and stopped in
the opposite order.

A child that fails is begun again within a budget; over it the process ends, and whoever runs us
(systemd) begins anew. A child that returns before it was told to is a fault like any other.
"""

import logging
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import trio

from . import limits

log = logging.getLogger("leadline.supervisor")


class ChildReturned(Exception):
    """A child ended by itself, which none may."""


class TooManyFailures(Exception):
    """The budget of restarts is used up; the last failure is the cause."""


@dataclass(slots=True)
class LoopHeartbeats:
    """When each loop last finished a pass: the watchdog's proof that they move."""

    last: dict[str, float] = field(default_factory=dict)
    pauses: dict[str, float] = field(default_factory=dict)

    def expect(self, name: str, pause_seconds: float) -> None:
        """From now on this loop is to beat once a pause."""
        self.pauses[name] = pause_seconds
        self.beat(name)

    def beat(self, name: str) -> None:
        self.last[name] = trio.current_time()

    def stale(self) -> list[str]:
        """The loops that have not finished a pass in their time."""
        now = trio.current_time()
        return [
            name
            for name, at in self.last.items()
            if now - at > self.pauses.get(name, 0) + limits.WATCHDOG_STALE_SECONDS
        ]


class Supervisor:
    """Counts failures over all children, as a process that fails everywhere is not well."""

    def __init__(self) -> None:
        self._failures: deque[float] = deque()
        self.restarts = 0

    async def keep(self, name: str, child: Callable[[], Awaitable[None]]) -> None:
        """Runs a child for good; raises TooManyFailures when it fails too often."""
        while True:
            try:
                await child()
                raise ChildReturned(name)
            # The one place where any failure is caught: it is logged whole, counted, and bounded.
            except Exception as error:
                self._count(name, error)

    def _count(self, name: str, error: Exception) -> None:
        now = trio.current_time()
        self._failures.append(now)
        while self._failures and now - self._failures[0] > limits.RESTARTS_WITHIN_SECONDS:
            self._failures.popleft()
        self.restarts += 1
        log.error("a part of the daemon failed", exc_info=error, extra={"part": name})
        if len(self._failures) > limits.RESTARTS_MOST:
            raise TooManyFailures(name) from error
