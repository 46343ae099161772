"""Schedule ticker: reserves windows before they are due and hands out their run batches.

The cursor of a shard passes each instant once, under the schedule terms of that instant. This is
true for any number of schedulers and after any downtime. An edit delays a reservation by at most
the duration of its own transaction. A shard that fails keeps its cursor, and the next pass tries
it again; the other shards go on.
"""

import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Final
from uuid import UUID

from ...storage.core.instant import SECOND, Instant
from ...storage.core.refusal import Unavailable
from ...storage.engine.pools import Pool
from ...storage.maintenance.tables.maintenances import is_any_over
from ...storage.maintenance.transactions.recheck_after import resume_after
from ...storage.scheduling.queries import shards as shards_queries
from ...storage.scheduling.rows import Shard
from ...storage.scheduling.rules.run_batch import RunBatch
from ...storage.scheduling.rules.schedule_plan import SchedulePlan
from ...storage.scheduling.transactions.reserve_windows import (
    ReservedStep,
    apply_edits_early,
    load_plan,
    reserve_windows,
    select_newest_edit,
)

log = logging.getLogger("leadline.schedule_ticker")

# One second shorter than AHEAD_US: a commit can take a second without a late run.
PAUSE_SECONDS: Final = 0.5
# Windows are reserved this far ahead, so that runs start on time between two ticks. The term of
# an edit begins after the reserved time; this bounds the delay of an edit.
AHEAD_US: Final = 1_500_000
# Longest time without a reservation. Until the next window, the cursor has nothing to pass.
REST_SECONDS: Final = 5.0
# Limit on the steps of one pass after downtime.
STEPS_MOST: Final = 120
# The number of attempts to apply edits outside the lock. Then the reservation applies all of them.
CATCH_UPS_MOST: Final = 3

HandOut = Callable[[int, int, RunBatch], Awaitable[None]]


class Ticker:
    """Reserves windows.

    `holder` is the id of this process if it also probes. Batches of its `regions` are then
    leased to it immediately and passed to `hand_out`. All others wait for workers.
    """

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
        # Instant up to which each shard is known to be reserved.
        self._reserved: dict[int, Instant] = {}
        # Instant of the last list of shards; before the first, the start of this ticker.
        self._listed_at = clock()
        # Called after checks were queued, to wake the prober of this process.
        self.on_resumed: Callable[[], None] = lambda: None
        self.reserved = 0
        # Failed reservations of a shard.
        self.failed = 0

    def lag_us(self) -> int:
        """Returns how far reservation is behind the clock, in the shard that is furthest behind.

        The lag grows while a pass is blocked or fails, and from the start until the first pass.
        """
        known = min(self._reserved.values(), default=self._listed_at)
        return max(self._clock() - known, 0)

    def rest_seconds(self) -> float:
        """Returns the time until the next known window must be reserved."""
        now = self._clock()
        nexts = [plan.timetable.next_due for plan in self._plans.values()]
        soonest = min((at for at in nexts if at is not None), default=None)
        if soonest is None:
            return REST_SECONDS
        return min(max((soonest - AHEAD_US - now) / SECOND, PAUSE_SECONDS), REST_SECONDS)

    async def pass_once(self) -> int:
        """Reserves the windows of all shards; returns their number."""
        async with self._pool.transaction("list_shards", read_only=True) as tx:
            shards = await shards_queries.select_shards(tx)
            is_resuming = await is_any_over(tx, self._clock())
        self._note(shards)
        before = self.reserved
        for shard in shards:
            try:
                await self._follow(shard.id)
            except Unavailable:
                raise
            except Exception as error:
                # One monitor must not stop the runs of all others. The plan can be half updated.
                log.error("shard cannot be reserved", extra={"shard": shard.id}, exc_info=error)
                self._plans.pop(shard.id, None)
                self.failed += 1
        if is_resuming:
            await self._resume()
        return self.reserved - before

    def _note(self, shards: Sequence[Shard]) -> None:
        """Records how far each shard is reserved, also by other schedulers."""
        self._reserved = {shard.id: shard.reserved_through for shard in shards}
        self._listed_at = self._clock()
        for gone in self._plans.keys() - self._reserved.keys():
            del self._plans[gone]

    async def _resume(self) -> None:
        """Requests a run of each monitor whose maintenance has ended."""
        if await self._pool.transact("resume_after_maintenance", resume_after):
            self.on_resumed()

    async def _follow(self, shard: int) -> None:
        # Read once: the clock advances during each step, so the loop would never reach it.
        ahead = Instant(self._clock() + AHEAD_US)
        for _ in range(STEPS_MOST):
            step = await self._reserve(shard, ahead)
            if step is None or step.through >= ahead:
                return

    async def _reserve(self, shard: int, ahead: Instant) -> ReservedStep | None:
        """Reserves one step. Returns None if the shard is gone or the plan cannot be updated."""
        for catch_ups in range(CATCH_UPS_MOST + 1):
            plan = self._plans.get(shard) or await self._load(shard)
            if plan is None:
                return None
            ours = plan.region in self._regions
            async with self._pool.transaction("reserve_windows") as tx:
                step = await reserve_windows(
                    tx,
                    plan,
                    ahead,
                    self._holder if ours else None,
                    at_any_cost=catch_ups == CATCH_UPS_MOST,
                )
            if step is not None:
                break
            await self._catch_up(plan)
        else:
            return None
        self.reserved += step.windows
        self._reserved[shard] = step.through
        for key, item in step.batches:
            if ours and self._hand_out is not None and item.published and item.kind == "run":
                await self._hand_out(key, shard, item)
        return step

    async def _catch_up(self, plan: SchedulePlan) -> None:
        async with self._pool.transaction("apply_edits", read_only=True) as tx:
            if not await apply_edits_early(tx, plan):
                del self._plans[plan.shard]

    async def _load(self, shard: int) -> SchedulePlan | None:
        async with self._pool.transaction("newest_edit") as tx:
            newest = await select_newest_edit(tx, shard)
        async with self._pool.transaction("load_schedule", read_only=True) as tx:
            plan = await load_plan(tx, shard, newest)
        if plan is not None:
            self._plans[shard] = plan
        return plan
