"""Sees to it that what follows from a change of status follows: outages are told, ladders climbed.

Any number of processes may watch: each decision is made under the locks of what it is about. A
monitor that somebody else holds is left to the next pass, and a monitor or an incident of which
something fails for a while; the others go on.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final, TypeVar
from uuid import UUID

import trio

from ...storage.alerting.queries.monitor_dependencies import (
    is_anything_due,
    select_astray_subjects,
    select_due_subjects,
)
from ...storage.alerting.tables import service_episodes as episodes
from ...storage.alerting.transactions.evaluate_services import end_forgotten_episodes
from ...storage.alerting.transactions.process_outages import OutageCounts, process_outages
from ...storage.core.instant import SECOND, Instant
from ...storage.core.key import MonitorKey, ServiceKey
from ...storage.core.refusal import Unavailable
from ...storage.engine.pools import Pool, Rejected, Tx
from ...storage.incidents.tables import incident_escalations as ladders
from ...storage.incidents.transactions.escalate_incident import escalate_if_due
from ..runtime.wake_event import WakeEvent

log = logging.getLogger("leadline.alert_processor")
K = TypeVar("K", MonitorKey, ServiceKey)

# How long a change that another process recorded waits at most.
PAUSE_SECONDS: Final = 0.5
# A transaction holds the states of what it decides about: so many at a time.
BATCH_MOST: Final = 20
AT_ONCE: Final = 500
ROUNDS_MOST: Final = 20
# No round is begun after this: whoever watches over the loops hears of one when its pass ends.
PASS_SECONDS: Final = 10
# What no signal told of is looked for this often.
ASTRAY_EVERY_US: Final = 30 * SECOND
PUT_OFF_US: Final = 30 * SECOND


@dataclass(slots=True)
class AlertCounters:
    """Since the process began, for metrics."""

    announced: int = 0
    recovered: int = 0
    reminded: int = 0
    # Steps of ladders by what the incident is of.
    escalated: Counter[str] = field(default_factory=Counter)
    held: Counter[str] = field(default_factory=Counter)
    # Outages that monitors told though a service owns their paging, by why it could not.
    failed_open: Counter[str] = field(default_factory=Counter)


def _batches(keys: Sequence[K]) -> Iterator[Sequence[K]]:
    """Of one organization each: no lock is needed in two of them at once."""
    for _, group in groupby(sorted(keys), key=lambda key: key[0]):
        own = list(group)
        yield from (own[start : start + BATCH_MOST] for start in range(0, len(own), BATCH_MOST))


class AlertProcessor:
    """`on_told` is called when something waits to be delivered, `on_asked` when a check does.
    `is_steady` says whether this process was there for long enough, without a break, to judge that
    whoever evaluates services is not."""

    def __init__(
        self,
        pool: Pool,
        clock: Callable[[], Instant],
        on_told: Callable[[], None],
        on_asked: Callable[[], None],
        is_steady: Callable[[], bool] = lambda: True,
    ) -> None:
        self._pool = pool
        self._clock = clock
        self._is_steady = is_steady
        self._on_told = on_told
        self._on_asked = on_asked
        self._put_off: dict[MonitorKey, Instant] = {}
        self._busy: set[MonitorKey] = set()
        self._astray_at = Instant(0)
        self.wake = WakeEvent()
        self.counts = AlertCounters()

    async def pass_once(self) -> int:
        """How many monitors and ladders were looked at."""
        now = self._clock()
        self._put_off = {key: until for key, until in self._put_off.items() if until > now}
        self._busy = set()
        total = 0
        until = trio.current_time() + PASS_SECONDS
        for _ in range(ROUNDS_MOST):
            # A pass may be long when much goes down: what falls due in it is not left to the next.
            keys, climbing = await self._due(self._clock())
            for batch in _batches(keys):
                await self._drive(batch)
            await self._climb(climbing)
            total += len(keys) + len(climbing)
            if (not keys and not climbing) or trio.current_time() >= until:
                break
        return total

    async def _due(self, now: Instant) -> tuple[list[MonitorKey], list[tuple[UUID, str]]]:
        """Monitors whose outage is to be looked at, and incidents whose ladder is."""
        is_astray_due = now - self._astray_at >= ASTRAY_EVERY_US
        forgotten: list[ServiceKey] = []
        if not is_astray_due:
            async with self._pool.statement("is_alert_due") as tx:
                if not await is_anything_due(tx, now):
                    return [], []
        left = {*self._put_off, *self._busy}
        async with self._pool.transaction("due_alerts", read_only=True) as tx:
            keys = await select_due_subjects(tx, now, AT_ONCE, sorted(left))
            if is_astray_due:
                astray = await select_astray_subjects(tx, now, AT_ONCE)
                keys += astray
                # As many again are looked for in the next round.
                self._astray_at = now if len(astray) < AT_ONCE else self._astray_at
                forgotten = await episodes.select_forgotten(tx, AT_ONCE)
            climbing = await ladders.select_due_ladders(tx, now, AT_ONCE)
        await self._end_forgotten(forgotten)
        return sorted(set(keys) - left), climbing

    async def _end_forgotten(self, services: Sequence[ServiceKey]) -> None:
        """Nobody evaluates these: who was told of their trouble hears of its end all the same."""
        if not self._is_steady():
            return
        ended = 0
        for batch in _batches(services):
            ended += await self._end_batch(batch)
        if ended:
            self._on_told()

    async def _end_batch(self, services: Sequence[ServiceKey]) -> int:
        async def work(tx: Tx) -> int:
            return await end_forgotten_episodes(tx, services)

        try:
            return await self._pool.transact("end_forgotten_episodes", work)
        except Unavailable:
            raise
        except Exception as error:
            # Most likely what its evaluator fails at too: pages of others do not wait for it.
            if len(services) == 1:
                log.error("episode cannot be ended", extra={"key": services[0]}, exc_info=error)
                return 0
        middle = len(services) // 2
        return await self._end_batch(services[:middle]) + await self._end_batch(services[middle:])

    async def _drive(self, keys: Sequence[MonitorKey]) -> None:
        """What fails is halved until it stands alone: no fault of one is another's silence."""

        async def work(tx: Tx) -> OutageCounts:
            return await process_outages(tx, keys, is_steady=self._is_steady())

        try:
            done = await self._pool.transact("process_outages", work)
        except Unavailable:
            raise
        except Exception as error:
            if len(keys) == 1:
                log.error(
                    "outage processing failed",
                    extra={"cause": str(error), "key": keys[0]},
                    exc_info=None if isinstance(error, Rejected) else error,
                )
                self._put_off[keys[0]] = Instant(self._clock() + PUT_OFF_US)
                return
            middle = len(keys) // 2
            await self._drive(keys[:middle])
            await self._drive(keys[middle:])
            return
        self._count(done)
        self._busy |= set(done.busy)
        if done.told:
            self._on_told()
        if done.asked:
            self._on_asked()

    def _count(self, done: OutageCounts) -> None:
        self.counts.announced += done.announced
        self.counts.recovered += done.recovered
        self.counts.reminded += done.reminded
        self.counts.held.update({by.value: count for by, count in done.held.items()})
        self.counts.failed_open.update({r.value: count for r, count in done.failed_open.items()})

    async def _climb(self, climbing: Sequence[tuple[UUID, str]]) -> None:
        for incident, subject in climbing:
            taken = await self._climb_one(incident)
            if taken:
                self.counts.escalated[subject] += taken
                self._on_told()

    async def _climb_one(self, incident: UUID) -> int:
        try:
            return await self._pool.transact("escalate", lambda tx: escalate_if_due(tx, incident))
        except Unavailable:
            raise
        except Exception as error:
            log.error("escalation failed", extra={"cause": str(error), "incident": incident})
            until = Instant(self._clock() + PUT_OFF_US)
            async with self._pool.transaction("postpone_escalation") as tx:
                await ladders.postpone_escalation(tx, incident, until)
            return 0
