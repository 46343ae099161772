"""Reserves every window as it falls due, and hands out what is to be run.

It keeps true: the cursor of a shard moves over each instant once, under the terms that were in
force then, whoever else tries and however long nobody did.
"""

import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from ...storage.core.instant import Instant
from ...storage.core.time_span import TimeSpan
from ...storage.engine.pools import Pool, Tx
from ...storage.maintenance.tables.maintenances import is_any_over
from ...storage.maintenance.transactions.recheck_after import resume_after
from ...storage.monitors.rules.monitor import MonitorType, manner_of
from ...storage.scheduling.queries import shards as shards_queries
from ...storage.scheduling.rows import Shard
from ...storage.scheduling.rules.due_queue import Timetable
from ...storage.scheduling.rules.maintenance_window import withholds
from ...storage.scheduling.rules.run_batch import DueWindow, RunBatch
from ...storage.scheduling.rules.run_schedule import ResultMode, RunWindow, ScheduleTerm
from ...storage.scheduling.tables import shards as schedules
from ...storage.scheduling.transactions.reserve_windows import reserve_windows, step_end

log = logging.getLogger("leadline.schedule_ticker")

# Shorter than what is reserved ahead by a second: so long a commit may take and no run begins late.
PAUSE_SECONDS: Final = 0.5
# Reserved this far ahead, so that a run begins when it is due and not when a tick comes by. An
# edit's term begins no earlier than what is reserved: this is how soon an edit can take hold.
AHEAD_US: Final = 1_500_000
# After a long absence a pass catches up at most this much, so that it stays bounded.
STEPS_MOST: Final = 120

HandOut = Callable[[int, int, RunBatch], Awaitable[None]]


@dataclass(slots=True)
class SchedulePlan:
    """What is known of one shard, valid for one generation."""

    shard: Shard
    timetable: Timetable
    orgs: dict[int, int] = field(default_factory=dict)
    manners: dict[int, ResultMode] = field(default_factory=dict)
    maintenance: dict[int, list[TimeSpan]] = field(default_factory=dict)
    canaries: set[int] = field(default_factory=set)

    @property
    def stands_at(self) -> Instant | None:
        """Where cursor and timetable stand; None where a reservation parted them."""
        at = self.shard.reserved_through
        return at if self.timetable.reserved_through == at else None

    def due(self, taken: Sequence[tuple[int, RunWindow]]) -> list[DueWindow]:
        found = []
        for monitor, window in taken:
            manner = self.manners[monitor]
            spans = self.maintenance.get(monitor, ())
            off = bool(spans) and withholds(window, manner, spans)
            canary = monitor in self.canaries
            found.append(DueWindow(self.orgs[monitor], monitor, manner, window, off, canary))
        return found


class Ticker:
    """`holder` is this process where it also probes: then batches of the `regions` it probes in are
    its own at once, and are given to `hand_out`; all others wait for workers."""

    def __init__(
        self,
        pool: Pool,
        clock: Callable[[], Instant],
        *,
        holder: UUID | None = None,
        hand_out: HandOut | None = None,
        regions: Collection[str] = (),
    ) -> None:
        self._pool = pool
        self._clock = clock
        self._holder = holder
        self._hand_out = hand_out
        self._regions = frozenset(regions)
        self._plans: dict[int, SchedulePlan] = {}
        # When checks were asked for that nothing of this process looks for.
        self.on_resumed: Callable[[], None] = lambda: None
        self.reserved = 0
        self.lag_us = 0

    async def pass_once(self) -> int:
        """How many windows were reserved."""
        async with self._pool.transaction("list_shards", read_only=True) as tx:
            shards = await shards_queries.select_shards(tx)
        before = self.reserved
        for shard in shards:
            await self._follow(shard)
        await self._resume()
        return self.reserved - before

    async def _resume(self) -> None:
        """What is out of maintenance is checked at once."""
        async with self._pool.statement("is_maintenance_over") as tx:
            if not await is_any_over(tx, self._clock()):
                return
        if await self._pool.transact("resume_after", resume_after):
            self.on_resumed()

    async def _follow(self, shard: Shard) -> None:
        plan = self._plans.get(shard.id)
        if plan is None or plan.shard.generation != shard.generation:
            plan = await self._load(shard.id)
        elif plan.stands_at != shard.reserved_through:
            # Another ticker was here, and its windows are its own; or ours failed on its way, and
            # what it had taken from the timetable is still to be reserved.
            plan.timetable.seek(shard.reserved_through)
            plan.shard = shard
        # Read once: the clock goes on during each step, and there would always be one more to take.
        ahead = Instant(self._clock() + AHEAD_US)
        for _ in range(STEPS_MOST):
            through = step_end(plan.shard.reserved_through, ahead)
            if through <= plan.shard.reserved_through:
                break
            if not await self._reserve(plan, through):
                plan = await self._load(shard.id)
        self.lag_us = max(self._clock() - plan.shard.reserved_through, 0)

    async def _reserve(self, plan: SchedulePlan, through: Instant) -> bool:
        due = plan.due(plan.timetable.take(through))
        ours = plan.shard.region in self._regions
        holder = self._holder if ours else None
        async with self._pool.transaction("reserve_windows") as tx:
            written = await reserve_windows(tx, plan.shard, through, due, holder)
        if written is None:
            return False
        plan.shard = _moved(plan.shard, through)
        self.reserved += len(due)
        for key, item in written:
            if ours and self._hand_out is not None and item.published and item.kind == "run":
                await self._hand_out(key, plan.shard.id, item)
        return True

    async def _load(self, shard: int) -> SchedulePlan:
        async with self._pool.transaction("load_schedule", read_only=True) as tx:
            plan = await _load_plan(tx, shard)
        self._plans[shard] = plan
        return plan


async def _load_plan(tx: Tx, key: int) -> SchedulePlan:
    shard = next(s for s in await shards_queries.select_shards(tx) if s.id == key)
    terms: dict[int, list[ScheduleTerm]] = {}
    orgs: dict[int, int] = {}
    manners: dict[int, ResultMode] = {}
    canaries: set[int] = set()
    for org, monitor, kind, term in await schedules.select_terms_after(
        tx, key, shard.reserved_through
    ):
        terms.setdefault(monitor, []).append(term)
        orgs[monitor] = org
        manners[monitor] = manner_of(MonitorType(kind))
        if kind == MonitorType.ASYNC_CANARY:
            canaries.add(monitor)
    maintenance = await shards_queries.select_maintenances(tx, shard.reserved_through, shard=key)
    timetable = Timetable(key, shard.reserved_through, terms)
    return SchedulePlan(shard, timetable, orgs, manners, maintenance, canaries)


def _moved(shard: Shard, through: Instant) -> Shard:
    return Shard(
        id=shard.id,
        org=shard.org,
        region=shard.region,
        reserved_through=through,
        generation=shard.generation,
        sealed_through=shard.sealed_through,
        settled_through=shard.settled_through,
        rolled_up_through=shard.rolled_up_through,
    )
