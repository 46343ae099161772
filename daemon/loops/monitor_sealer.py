"""Monitor sealer: advances the fence, settles windows before it and rolls up full hours."""

import logging
from collections.abc import Callable
from typing import Final

from ...storage.core.instant import HOUR, Instant
from ...storage.engine.pools import Pool, Rejected
from ...storage.figures import tables as figures
from ...storage.figures.transactions import chunks, roll_up_hour, watermark_of_shard
from ...storage.results.tables import sealing as seals
from ...storage.results.transactions.seal_windows import seal_windows
from ...storage.scheduling.queries import shards as shards_queries
from ...storage.scheduling.rows import Shard
from ..runtime.wake_event import staggered

log = logging.getLogger("leadline.monitor_sealer")

PAUSE_SECONDS: Final = 2.0
# Longest time between two moves of the fence, while no window is reserved.
REST_SECONDS: Final = 15.0
# Limit on the hours of a shard that one pass rolls up, for example after downtime.
HOURS_MOST: Final = 24


class MonitorSealer:
    def __init__(self, pool: Pool, clock: Callable[[], Instant]) -> None:
        self._pool = pool
        self._clock = clock
        self.missed: dict[str, int] = {}

    def rest_seconds(self) -> float:
        return staggered(REST_SECONDS)

    async def pass_once(self) -> int:
        """Seals and rolls up all shards; returns the number of windows settled as missed.

        A shard whose rows the database rejects stops no other shard.
        """
        async with self._pool.transaction("list_shards", read_only=True) as tx:
            shards = await shards_queries.select_shards(tx)
        count = 0
        for shard in shards:
            try:
                count += await self.seal(shard)
                # Nothing before the next full hour can be settled yet.
                if shard.rolled_up_through + HOUR <= self._clock():
                    await self.roll_up(shard.id)
            except Rejected as error:
                given = {"region": shard.region, "shard": shard.id, "cause": str(error)}
                log.error("shard not sealed", extra=given)
        return count

    async def seal(self, shard: Shard) -> int:
        """Seals one shard up to its new fence; returns the number of missed windows."""
        async with self._pool.transaction("advance_fence") as tx:
            fence = await seals.advance_fence(tx, shard.id, self._clock())
        if fence == shard.settled_through:
            return 0
        missed = 0
        settled = fence
        cursor: int | None = 0
        while cursor is not None:
            async with self._pool.transaction("seal_windows") as tx:
                sealed = await seal_windows(tx, shard.id, fence, cursor)
            missed += sealed.missed
            if sealed.left_from is not None:
                # The next pass settles the windows that this one left out.
                settled = min(settled, Instant(sealed.left_from - 1))
            for reason, count in sealed.reasons.items():
                self.missed[reason] = self.missed.get(reason, 0) + count
            cursor = sealed.cursor
        async with self._pool.transaction("finish_sealing") as tx:
            await seals.finish(tx, shard.id, settled)
        if missed:
            log.warning("runs missed", extra={"region": shard.region, "missed": missed})
        return missed

    async def roll_up(self, shard: int) -> int:
        """Rolls up the hours before the watermark; returns their number."""
        for hours in range(HOURS_MOST):
            async with self._pool.transaction("list_hours_to_roll_up", read_only=True) as tx:
                current = next(s for s in await shards_queries.select_shards(tx) if s.id == shard)
                end = Instant(current.rolled_up_through + HOUR)
                # The watermark is never later than `settled_through`. The cheap comparison is
                # first: most passes find no full hour, and a shard can have very many monitors.
                if end > current.settled_through or end > await watermark_of_shard(tx, current):
                    return hours
                keys = await figures.select_monitors_of_shard(tx, shard)
            for part in chunks(keys):
                async with self._pool.transaction("roll_up_hour") as tx:
                    await roll_up_hour(tx, part, current.rolled_up_through)
            async with self._pool.transaction("advance_rolled_up") as tx:
                await figures.advance_rolled_up(tx, shard, current.rolled_up_through, end)
        return HOURS_MOST
