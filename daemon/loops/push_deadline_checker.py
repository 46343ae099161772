"""Checker of push deadlines: evaluates monitors and push runs as soon as their deadlines pass.

The cached deadlines only determine when to evaluate. Under the row lock, the stored state and the
presences of the receiving processes decide whether a push was missed or a run has overrun.
"""

import logging
from collections.abc import Callable, Collection
from heapq import heappop, heappush
from typing import Final

from ...storage.core.instant import SECOND, Instant
from ...storage.core.key import MonitorKey
from ...storage.engine.pools import Pool, Rejected
from ...storage.monitors.rules.monitor_state import StatusChange
from ...storage.results.event_bus import Bus, StatusEvent
from ...storage.results.queries.push_deadlines import select_push_deadlines
from ...storage.results.rules.incoming_result import IncomingResult, StoreResult
from ...storage.results.tables.push_runs import select_undecided_orgs
from ...storage.results.transactions.judge_push_runs import judge_push_runs
from ...storage.results.transactions.record_missed_pushes import (
    MissedPushCheck,
    record_missed_pushes,
)
from ...storage.results.transactions.state_update import StateUpdate
from ...storage.scheduling.queries import shards as shards_queries
from ..runtime.wake_event import staggered

log = logging.getLogger("leadline.push_deadline_checker")

PAUSE_SECONDS: Final = 0.2
AT_ONCE: Final = 50
ORGS_AT_ONCE: Final = 200
# Longest delay until new, edited and resumed monitors are found.
REFRESH_US: Final = 5 * SECOND
# The same for the first one, if the notification of its edit is lost.
REST_SECONDS: Final = 15.0
UNDECIDED_US: Final = SECOND // 10


class PushDeadlineChecker:
    """Records missed pushes and overruns. `ask_presence` requests a presence renewal now."""

    def __init__(
        self,
        pool: Pool,
        bus: Bus,
        clock: Callable[[], Instant],
        ask_presence: Callable[[], None],
    ) -> None:
        self._pool = pool
        self._bus = bus
        self._clock = clock
        self._ask_presence = ask_presence
        self._look_at: dict[MonitorKey, Instant] = {}
        self._shards: dict[MonitorKey, int] = {}
        self._heap: list[tuple[Instant, MonitorKey]] = []
        # Earliest deadline of an undecided run by organization.
        self._run_deadlines: dict[int, Instant] = {}
        self._refreshed_at = Instant(0)
        self.missed = 0

    def rest_seconds(self) -> float:
        """Returns the time until the next deadline or refresh."""
        now = self._clock()
        if not self._shards:
            return staggered(REST_SECONDS)
        at = Instant(self._refreshed_at + REFRESH_US)
        if self._heap:
            at = min(at, self._heap[0][0])
        at = min([at, *self._run_deadlines.values()])
        return max(at - now, 0) / SECOND

    async def pass_once(self) -> int:
        """Evaluates the due deadlines; returns the number of missed pushes and overruns."""
        now = self._clock()
        if not self._shards or now - self._refreshed_at >= REFRESH_US:
            await self._refresh()
            self._refreshed_at = now
        before = self.missed
        while keys := self._due(now):
            await self._decide(keys, now)
        return self.missed - before + await self._check_runs(now)

    async def _refresh(self) -> None:
        """Reads all deadlines again, because an edit can have moved any of them."""
        async with self._pool.transaction("push_deadlines", read_only=True) as tx:
            shards = [shard.id for shard in await shards_queries.select_shards(tx)]
            found = await select_push_deadlines(tx, shards)
            self._run_deadlines = dict(await select_undecided_orgs(tx, ORGS_AT_ONCE))
        self._shards = {key: shard for key, shard, _ in found}
        self._look_at = {key: deadline for key, _, deadline in found if deadline is not None}
        self._heap = sorted((at, key) for key, at in self._look_at.items())

    def _due(self, now: Instant) -> list[MonitorKey]:
        keys: list[MonitorKey] = []
        while self._heap and self._heap[0][0] <= now and len(keys) < AT_ONCE:
            at, key = heappop(self._heap)
            if self._look_at.get(key) == at:
                keys.append(key)
        return sorted(keys)

    async def _decide(self, keys: list[MonitorKey], now: Instant) -> None:
        """Evaluates deadlines; halves a rejected batch until the failing monitor is isolated.

        The failing monitor is evaluated again after the next refresh.
        """
        try:
            await self._decide_together(keys, now)
        except Rejected as error:
            if len(keys) == 1:
                log.error("missed push not stored", extra={"cause": str(error), "key": keys[0]})
                return
            middle = len(keys) // 2
            await self._decide(keys[:middle], now)
            await self._decide(keys[middle:], now)

    async def _decide_together(self, keys: list[MonitorKey], now: Instant) -> None:
        shards = sorted({self._shards[key] for key in keys})
        async with self._pool.transaction("record_missed_pushes") as tx:
            judged, found, flips = await record_missed_pushes(tx, keys, shards)
        self.missed += len(found)
        self._publish(found, flips)
        for key in keys:
            self._plan(key, judged.get(key), now)
        if any(item.undecided for item in judged.values()):
            self._ask_presence()

    def _plan(self, key: MonitorKey, judged: MissedPushCheck | None, now: Instant) -> None:
        if judged is None or judged.look_again_at is None:
            self._look_at.pop(key, None)
            return
        soonest = Instant(now + UNDECIDED_US)
        at = max(judged.look_again_at, soonest)
        self._look_at[key] = at
        heappush(self._heap, (at, key))

    def _publish(
        self, found: list[tuple[IncomingResult, StateUpdate]], flips: list[StatusChange]
    ) -> None:
        changed = {(flip.org, flip.monitor, flip.at) for flip in flips}
        for arrival, course in found:
            self._bus.publish(
                StatusEvent(
                    monitor_uid=course.locked.uid,
                    project_uid=course.locked.project_uid,
                    org=arrival.org,
                    project=course.locked.project,
                    status=course.state.status,
                    up=False,
                    latency_ms=0,
                    ts=arrival.ts,
                    changed=(*arrival.key, arrival.ts) in changed,
                )
            )

    async def _check_runs(self, now: Instant) -> int:
        """Judges the runs whose deadline has passed. Returns the number of overruns."""
        count = 0
        for org in [org for org, at in self._run_deadlines.items() if at <= now]:
            # A rejected one is repeated after the next refresh, which also finds further deadlines.
            del self._run_deadlines[org]
            try:
                async with self._pool.transaction("judge_push_runs") as tx:
                    found = await judge_push_runs(tx, org)
            except Rejected as error:
                log.error("push runs not judged", extra={"cause": str(error), "org": org})
                continue
            count += len(found.overruns)
            changed = {(flip.org, flip.monitor, flip.at) for flip in found.flips}
            for arrival, stored in found.overruns:
                self._publish_overrun(arrival, stored, changed)
            if found.undecided:
                self._run_deadlines[org] = Instant(now + UNDECIDED_US)
                self._ask_presence()
        return count

    def _publish_overrun(
        self,
        arrival: IncomingResult,
        stored: StoreResult,
        changed: Collection[tuple[int, int, Instant]],
    ) -> None:
        state = stored.standing
        if state is not None:
            self._bus.publish(
                StatusEvent(
                    monitor_uid=state.monitor_uid,
                    project_uid=state.project_uid,
                    org=arrival.org,
                    project=state.project,
                    status=state.status,
                    up=False,
                    latency_ms=arrival.latency_ms,
                    ts=stored.ts,
                    changed=(*arrival.key, stored.ts) in changed,
                )
            )
