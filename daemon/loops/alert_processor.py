"""Alert processor: announces, reminds and closes outages, and takes escalation steps.

Several processes can run it: each decision is made under the row locks of its subjects. A monitor
that another transaction has locked is left to the next pass. A monitor or incident that fails is
postponed for PUT_OFF_US; the others continue.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
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
from ...storage.mutes.queries import select_starting_mutes
from ...storage.mutes.transactions import start_due_mutes
from ..runtime.wake_event import WakeEvent

log = logging.getLogger("leadline.alert_processor")
K = TypeVar("K", MonitorKey, ServiceKey)

# Least time between two passes for what is due.
PAUSE_SECONDS: Final = 0.5
# A transaction locks the states of one batch, which bounds the number of locked rows.
BATCH_MOST: Final = 20
AT_ONCE: Final = 500
ROUNDS_MOST: Final = 20
# No round begins after this, because the supervisor sees progress only at the end of a pass.
PASS_SECONDS: Final = 10
# Interval of the scan for subjects that no signal announced.
ASTRAY_EVERY_US: Final = 30 * SECOND
PUT_OFF_US: Final = 30 * SECOND
# Projects of which one round starts the mutes, and the pause of one in which a row is locked.
STARTING_MOST: Final = 100
LOCKED_US: Final = SECOND


@dataclass(slots=True)
class AlertCounters:
    """Counts since the start of the process, for metrics."""

    announced: int = 0
    recovered: int = 0
    reminded: int = 0
    # Escalation steps by subject kind of the incident.
    escalated: Counter[str] = field(default_factory=Counter)
    held: Counter[str] = field(default_factory=Counter)
    # Outages that monitors announced although a service owns their paging, by the reason.
    failed_open: Counter[str] = field(default_factory=Counter)


def _batches(keys: Sequence[K]) -> Iterator[Sequence[K]]:
    """Yields batches of one organization each, which bounds the rows that a transaction locks."""
    for _, group in groupby(sorted(keys), key=lambda key: key[0]):
        own = list(group)
        yield from (own[start : start + BATCH_MOST] for start in range(0, len(own), BATCH_MOST))


class AlertProcessor:
    """Processes due outages and escalations.

    `on_told` is called after a transaction queued a delivery, `on_asked` after it requested a
    check. `is_steady` returns whether this process has run without a gap for the required time.
    Only then can it judge that no evaluator is running.
    """

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
        # Projects whose mutes start in a later pass.
        self._unstarted: dict[tuple[int, int], Instant] = {}
        self._astray_at = Instant(0)
        self.wake = WakeEvent()
        self.counts = AlertCounters()

    def rest_seconds(self) -> float:
        """Returns the time until the next scan for astray subjects."""
        return max(self._astray_at + ASTRAY_EVERY_US - self._clock(), 0) / SECOND

    async def pass_once(self) -> int:
        """Processes what is due; returns the number of monitors and escalations processed."""
        now = self._clock()
        self._put_off = {key: until for key, until in self._put_off.items() if until > now}
        self._busy = set()
        self._unstarted = {key: until for key, until in self._unstarted.items() if until > now}
        total = 0
        until = trio.current_time() + PASS_SECONDS
        for _ in range(ROUNDS_MOST):
            # A pass can be long if many monitors go down: each round uses the current instant.
            keys, climbing, starting = await self._due(self._clock())
            for batch in _batches(keys):
                await self._drive(batch)
            await self._climb(climbing)
            # Last, because no page waits for it. The next round climbs what it makes due.
            await self._start_mutes(starting)
            total += len(keys) + len(climbing)
            if not (keys or climbing or starting) or trio.current_time() >= until:
                break
        return total

    async def _due(
        self, now: Instant
    ) -> tuple[list[MonitorKey], list[tuple[UUID, str]], list[tuple[int, int]]]:
        """Returns the due monitors and incidents, and the projects with mutes that start.

        Ends forgotten episodes if the scan for astray subjects is due.
        """
        is_astray_due = now - self._astray_at >= ASTRAY_EVERY_US
        forgotten: list[ServiceKey] = []
        if not is_astray_due:
            async with self._pool.statement("is_alert_due") as tx:
                if not await is_anything_due(tx, now):
                    return [], [], []
        left = {*self._put_off, *self._busy}
        async with self._pool.transaction("due_alerts", read_only=True) as tx:
            starting = await select_starting_mutes(tx, STARTING_MOST)
            keys = await select_due_subjects(tx, now, AT_ONCE, sorted(left))
            if is_astray_due:
                astray = await select_astray_subjects(tx, now, AT_ONCE)
                keys += astray
                # A full result means that more can exist: the next round scans again.
                self._astray_at = now if len(astray) < AT_ONCE else self._astray_at
                forgotten = await episodes.select_forgotten(tx, AT_ONCE)
            climbing = await ladders.select_due_ladders(tx, now, AT_ONCE)
        await self._end_forgotten(forgotten)
        starting = [place for place in starting if place not in self._unstarted]
        return sorted(set(keys) - left), climbing, starting

    async def _start_mutes(self, places: Sequence[tuple[int, int]]) -> None:
        """Starts due mutes, project by project. A project that fails is postponed."""
        for org, project in places:
            try:
                started = await self._pool.transact(
                    "start_mutes", partial(start_due_mutes, org=org, project=project)
                )
            except Unavailable:
                raise
            except Exception as error:
                extra = {"cause": str(error), "key": (org, project)}
                log.error("mutes cannot be started", extra=extra)
                self._unstarted[org, project] = Instant(self._clock() + PUT_OFF_US)
            else:
                if not started:
                    self._unstarted[org, project] = Instant(self._clock() + LOCKED_US)

    async def _end_forgotten(self, services: Sequence[ServiceKey]) -> None:
        """Ends episodes of services that no process evaluates, so that recipients are notified."""
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
            # The evaluator probably fails on the same service. Other alerts must not wait for it.
            if len(services) == 1:
                log.error("episode cannot be ended", extra={"key": services[0]}, exc_info=error)
                return 0
        middle = len(services) // 2
        return await self._end_batch(services[:middle]) + await self._end_batch(services[middle:])

    async def _drive(self, keys: Sequence[MonitorKey]) -> None:
        """Processes outages; halves a failing batch until the failing monitor is isolated."""

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
