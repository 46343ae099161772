"""Reader of due work: wakes the loops of its process when they have something to do.

A loop does not poll the database. This reader queries the instants of all kinds of work in one
statement, and wakes each loop at its instant. A notification of another process wakes the loop
immediately. If a notification is lost, the next read finds its work after REST_SECONDS. While the
process cannot listen, it reads every UNHEARD_SECONDS.
"""

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import Final

import trio

from ...storage.alerting.rules.alert_episode import EVERY_US
from ...storage.core.instant import SECOND, Instant
from ...storage.engine.pools import Pool
from ...storage.scheduling.queries.due_work import select_due_work
from ...storage.scheduling.rules.work import Work
from ..runtime.wake_event import WakeEvent, staggered

# Longest delay of work whose notification is lost.
REST_SECONDS: Final = 5.0
# The same for a process that knows that it hears no notifications.
UNHEARD_SECONDS: Final = 1.0
# Least time between two reads. The passes of busy loops request more of them.
PAUSE_SECONDS: Final = 0.5
# Each loop also passes at this interval, in case that the statement here overlooks its work.
LOOP_REST_SECONDS: Final = 120.0
# Work that a revision or a number announces, and not an instant.
_UNTIMED: Final = (Work.SCHEDULE, Work.DEFINITIONS)


class DueReader:
    """Wakes loops. `regions` are those that this process probes in."""

    def __init__(
        self, pool: Pool, clock: Callable[[], Instant], regions: Sequence[str] = ()
    ) -> None:
        self._pool = pool
        self._clock = clock
        self._regions = regions
        self._wakes: dict[Work, list[WakeEvent]] = {}
        self._is_hearing = False
        self.wake = WakeEvent()

    def register(self, work: Work, wake: WakeEvent) -> None:
        """Registers the wake event of a loop that does this work."""
        self._wakes.setdefault(work, []).append(wake)

    def ask(self) -> None:
        """Requests a read soon, because a pass can have changed the instants."""
        self.wake.set_at(trio.current_time())

    def hear(self, payloads: Collection[str]) -> None:
        """Wakes the loops of the work that other processes announced, and reads again."""
        for payload in payloads:
            # `AGAIN` only asks to read. A newer process can announce kinds that are unknown here.
            with suppress(ValueError):
                for wake in self._wakes.get(Work(payload), ()):
                    wake.set()
        self.ask()

    def set_hearing(self, is_hearing: bool) -> None:
        """Records whether this process hears notifications. Earlier ones can be lost."""
        self._is_hearing = is_hearing
        if is_hearing:
            self.hear([work.value for work in Work])

    def rest_seconds(self) -> float:
        return staggered(REST_SECONDS if self._is_hearing else UNHEARD_SECONDS)

    async def pass_once(self) -> None:
        async with self._pool.statement("due_work") as tx:
            due = await select_due_work(tx, self._regions, EVERY_US)
        clock, now = self._clock(), trio.current_time()
        for work, at in due.items():
            for wake in self._wakes.get(work, ()):
                if at is not None:
                    wake.set_at(now + max(at - clock, 0) / SECOND)
        if not self._is_hearing:
            for work in _UNTIMED:
                for wake in self._wakes.get(work, ()):
                    wake.set_at(now)
