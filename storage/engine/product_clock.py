"""Product clock of a process: applies the rule of `core/clock` to readings of the database.

Invariant: `now()` never decreases, does not await, and agrees with the other processes. While the
database is unavailable, the monotonic clock continues it. The presence renewal reads it.
"""

import time
from collections.abc import Awaitable, Callable
from typing import Final

from ..core.clock import Clock, started
from ..core.instant import SECOND, Instant

# A process begins with a reading that took less, or with the last of so many.
SLOW_US: Final = 1_000_000
FIRST_READINGS: Final = 3
# A larger step forward is time that this process did not live through: a clock was set, or this
# virtual machine was paused.
JUMP_US: Final = SECOND

# The database's clock, and the latest `through` of all presences, or None when there is none.
Reading = tuple[Instant, Instant | None]


# It also counts while the machine sleeps, so that results after a wake-up have the right time.
_RUNNING: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def _monotonic_us() -> int:
    return time.clock_gettime_ns(_RUNNING) // 1000


class ProductClock:
    """Clock from `read`, which queries the database, and a monotonic clock in microseconds."""

    def __init__(
        self,
        read: Callable[[], Awaitable[Reading]],
        monotonic_us: Callable[[], int] = _monotonic_us,
    ) -> None:
        self._read = read
        self._monotonic_us = monotonic_us
        self._clock: Clock | None = None
        # Number of steps forward by more than JUMP_US.
        self.jumps = 0

    def now(self) -> Instant:
        """Returns the instant. Raises RuntimeError before the first reading."""
        if self._clock is None:
            raise RuntimeError("the product's clock was not read yet")
        return self._clock.at(self._monotonic_us())

    @property
    def skew_us(self) -> int:
        """Lead over the database's clock at the last reading, µs. The metrics report it."""
        return self._clock.ahead_us if self._clock else 0

    @property
    def is_notably_off(self) -> bool:
        return self._clock is not None and self._clock.is_notably_off

    async def refresh(self) -> None:
        """Reads the database's clock, the first time until a reading was quick."""
        if self._clock is not None:
            await self.follow(self._read)
            return
        for _ in range(FIRST_READINGS):
            if await self.follow(self._read) <= SLOW_US:
                break

    async def follow(self, read: Callable[[], Awaitable[Reading]]) -> int:
        """Reads the database's clock once by `read`, for example in a transaction that is open.
        Returns how long that took, µs.

        The database read its clock at an instant between request and response. So a slow reading
        moves the time no further than it must.
        """
        asked_us = self._monotonic_us()
        database, latest_through = await read()
        told_us = self._monotonic_us()
        took_us = told_us - asked_us
        if self._clock is None:
            self._clock = started(told_us, database, latest_through)
        else:
            carried = self._clock.at(told_us)
            closest = Instant(min(max(carried, database), database + took_us))
            following = self._clock.read(told_us, closest, latest_through)
            self.jumps += following.shown - carried > JUMP_US
            self._clock = following
        return took_us
