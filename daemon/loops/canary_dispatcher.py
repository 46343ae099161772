"""Canary dispatcher: runs one canary per monitor and a limited number per region.

A probing process claims runs while its regions have free slots. It frees a slot after the run has
ended and its result is stored. A process that keeps the schedule records a failure for each window
that was refused a run.
"""

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final
from uuid import UUID

import trio

from ...probes.check.canary_stages import Stage, StageEnd
from ...probes.check.result import RunOutcome
from ...probes.jobs.agent_protocol import run_key
from ...probes.net.egress import Egress
from ...probes.runner import run
from ...storage.core.instant import Instant
from ...storage.core.key import MonitorKey
from ...storage.core.refusal import Unavailable
from ...storage.engine.pools import Pool
from ...storage.monitors.rows import ProbeErrorReason
from ...storage.monitors.tables.probe_errors import record_probe_errors
from ...storage.results.rules.incoming_result import StoreOutcome
from ...storage.results.transactions.find_refused_canaries import find_refused
from ...storage.scheduling.queries import shards as shards_queries
from ...storage.scheduling.tables import canary_runs
from ...storage.scheduling.transactions.claim_canary_runs import ClaimedRun, claim_canary_runs
from .check_cache import CachedCheck, CheckCache
from .prober import arrival_of
from .result_recorder import Recorder

log = logging.getLogger("leadline.canary_dispatcher")

PAUSE_SECONDS: Final = 1.0
LONG_AGO: Final = Instant(0)
_TROUBLES: Final = frozenset(trouble.value for trouble in ProbeErrorReason)


@dataclass(slots=True)
class CanaryDispatcher:
    """Claims and runs canaries.

    `regions` are the regions that this process probes in; empty if it does not probe. `refuses` is
    true if this process keeps the schedule and therefore records refused windows.
    """

    pool: Pool
    process: UUID
    regions: Sequence[str]
    places: int
    catalogue: CheckCache
    recorder: Recorder
    reach: Egress
    clock: Callable[[], Instant]
    permits: trio.CapacityLimiter
    refuses: bool
    refused: Counter[str] = field(default_factory=Counter)
    stages: Counter[tuple[str, str]] = field(default_factory=Counter)
    _judged_through: Instant = LONG_AGO
    _in_hand: set[MonitorKey] = field(default_factory=set)
    _running: trio.Nursery | None = None
    _closed: trio.Event = field(default_factory=trio.Event)

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Waits for `close`, and then until the running canaries have ended."""
        async with trio.open_nursery() as nursery:
            self._running = nursery
            task_status.started()
            try:
                await self._closed.wait()
            finally:
                self._running = None

    def close(self) -> None:
        """Stops claiming runs; running canaries finish."""
        self._closed.set()

    async def pass_once(self) -> None:
        for region in self.regions:
            await self._take(region)
        if self.refuses:
            await self._refuse()

    async def _take(self, region: str) -> None:
        if self._running is None or self._closed.is_set():
            return
        async with self.pool.transaction("claim_canary_runs") as tx:
            # Runs that ended while the database was unavailable still occupy their slots.
            await canary_runs.end_all_but(tx, self.process, self._in_hand)
            shards = [shard.id for shard in await shards_queries.select_shards(tx, [region])]
            taken = await claim_canary_runs(
                tx, region, shards, self.process, self.places, self.places
            )
        for item in taken:
            if self._running is None or self._closed.is_set():
                return
            self._in_hand.add(item.key)
            self._running.start_soon(self._run, item)

    async def _run(self, item: ClaimedRun) -> None:
        try:
            async with self.permits:
                await self._run_or_note(item)
        except Unavailable:
            log.warning("canary result not stored: database unavailable")
        try:
            async with self.pool.statement("end_canary") as tx:
                await canary_runs.end_run(tx, item.key, self.process)
        except Unavailable:
            log.warning("canary slot is released when the database is available again")
        finally:
            # Removed only now: until the slot is free, no process may start the canary again.
            self._in_hand.discard(item.key)

    async def _run_or_note(self, item: ClaimedRun) -> None:
        self.catalogue.forget(item.key)
        entry = (await self.catalogue.find([item.key])).get(item.key)
        if entry is not None and entry.check is not None:
            await self._probe(item, entry)
        elif entry is not None:
            await self._record_unready(item, entry, entry.trouble.partition(":")[0])

    async def _record_unready(self, item: ClaimedRun, entry: CachedCheck, reason: str) -> None:
        log.warning("canary could not be run", extra={"monitor": str(entry.uid), "reason": reason})
        if reason in _TROUBLES:
            async with self.pool.transaction("record_probe_errors") as tx:
                await record_probe_errors(tx, {item.key: (ProbeErrorReason(reason), self.clock())})

    async def _probe(self, item: ClaimedRun, entry: CachedCheck) -> None:
        assert entry.check is not None
        due = item.due if item.due is not None else self.clock()
        check = replace(entry.check, run_key=run_key(entry.uid, entry.revision, due))
        reach = replace(self.reach, stages=self._count)
        result = await run(check, reach, self.clock, item.key[0])
        if result.outcome is RunOutcome.UNKNOWN:
            await self._record_unready(item, entry, str(result.unknown_reason))
            return
        arrival = arrival_of(item.key, item.shard, entry, result, item.due)
        recorded = await self.recorder.record(arrival)
        if recorded.fate is StoreOutcome.REFUSED:
            log.error("canary result not stored", extra={"cause": recorded.reason})

    def _count(self, stage: Stage, end: StageEnd) -> None:
        self.stages[stage.value, end.value] += 1

    async def _refuse(self) -> None:
        async with self.pool.transaction("find_refused_canaries") as tx:
            found = await find_refused(tx, self.places, self._judged_through)
        told = await self.recorder.record_all(found.arrivals)
        for recorded, arrival in zip(told, found.arrivals, strict=True):
            if recorded.fate in (StoreOutcome.LIVE, StoreOutcome.HISTORY):
                self.refused[arrival.withheld] += 1
        self._judged_through = found.through
