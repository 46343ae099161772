"""Reserves every window as it falls due, and hands out what is to be run.

The cursor of a shard moves over each instant once, under the terms that were in force then, however
many schedulers run and however long none ran. Edits delay a reservation by the time of one edit.
"""

import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Final
from uuid import UUID

from ...storage.core.instant import Instant
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

# Shorter than what is reserved ahead by a second: so long a commit may take and no run begins late.
PAUSE_SECONDS: Final = 0.5
# Reserved this far ahead, so that a run begins when it is due and not when a tick comes by. An
# edit's term begins no earlier than what is reserved: this is how soon an edit can take hold.
AHEAD_US: Final = 1_500_000
# After a long absence a pass catches up at most this much, so that it stays bounded.
STEPS_MOST: Final = 120
# The number of attempts to apply edits outside the lock. Then the reservation applies all of them.
CATCH_UPS_MOST: Final = 3

HandOut = Callable[[int, int, RunBatch], Awaitable[None]]


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
        # How far each shard is known to be reserved.
        self._reserved: dict[int, Instant] = {}
        # When the shards were last listed, or this scheduler was made.
        self._listed_at = clock()
        # When checks were asked for that nothing of this process looks for.
        self.on_resumed: Callable[[], None] = lambda: None
        self.reserved = 0

    def lag_us(self) -> int:
        """Returns how far reservation is behind the clock, in the shard that is furthest behind.

        The lag grows while a pass is blocked or fails, and from the start until the first pass.
        """
        known = min(self._reserved.values(), default=self._listed_at)
        return max(self._clock() - known, 0)

    async def pass_once(self) -> int:
        """How many windows were reserved."""
        async with self._pool.transaction("list_shards", read_only=True) as tx:
            shards = await shards_queries.select_shards(tx)
        self._note(shards)
        before = self.reserved
        for shard in shards:
            await self._follow(shard.id)
        await self._resume()
        return self.reserved - before

    def _note(self, shards: Sequence[Shard]) -> None:
        """Takes over how far the shards are reserved, also by other schedulers."""
        self._reserved = {shard.id: shard.reserved_through for shard in shards}
        self._listed_at = self._clock()
        for gone in self._plans.keys() - self._reserved.keys():
            del self._plans[gone]

    async def _resume(self) -> None:
        """What is out of maintenance is checked at once."""
        async with self._pool.statement("is_maintenance_over") as tx:
            if not await is_any_over(tx, self._clock()):
                return
        if await self._pool.transact("resume_after", resume_after):
            self.on_resumed()

    async def _follow(self, shard: int) -> None:
        # Read once: the clock goes on during each step, and there would always be one more to take.
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
