"""Keeps house: partitions a week ahead, old ones dropped, what has run out removed."""

import logging
from collections.abc import Callable
from typing import Final

from ...storage.pools import Pool
from ...storage.postgres_partitions import drop_partitions, make_partitions
from ...storage.rules.instant import DAY, HOUR, Instant
from ...storage.tables import (
    compositions,
    presences,
    push_marks,
    queues,
    results,
    schedules,
    sessions,
)

log = logging.getLogger(__name__)

PAUSE_SECONDS: Final = 600.0
AHEAD_US: Final = 7 * DAY
# A result is never stored before the partition of its instant: yesterday's must be there on a
# first start, as agents and slow runs bring what began before midnight.
BEHIND_US: Final = DAY
# How far behind the last sealing a window may still be open (a push's interval, grace and late
# arrival), and how far a result may reach into the hours after it (three of the longest intervals).
OPEN_BEHIND_US: Final = 4 * DAY
SIGNALS_KEPT_US: Final = 7 * DAY
PRESENCES_KEPT_US: Final = 40 * DAY


class Janitor:
    def __init__(
        self,
        pool: Pool,
        clock: Callable[[], Instant],
        *,
        heartbeat_days: int,
        ledger_days: int,
    ) -> None:
        self._pool = pool
        self._clock = clock
        self._kept = {
            ("heartbeats", "ts"): heartbeat_days,
            ("expected_runs", "due_at"): ledger_days,
        }

    async def make_room(self) -> None:
        """Partitions from yesterday to a week ahead; needed before anything can be stored. After
        days in which nobody made them also those of the days between: what fell due then has its
        row still to come."""
        now = self._clock()
        open_from = await self._open_from()
        for parent, column in self._kept:
            await make_partitions(
                self._pool,
                parent,
                column,
                from_=min(Instant(now - BEHIND_US), open_from),
                through=Instant(now + AHEAD_US),
            )

    async def _open_from(self) -> Instant:
        """Before this instant every window is settled and every hour rolled up."""
        async with self._pool.transaction("list_shards", read_only=True) as tx:
            shards = await schedules.select_shards(tx)
        ends = [min(shard.finished_through, shard.figured_through) for shard in shards]
        return min(ends, default=self._clock())

    async def pass_once(self) -> None:
        await self.make_room()
        now = self._clock()
        open_from = await self._open_from()
        for (parent, _), days in self._kept.items():
            before = min(Instant(now - days * DAY), Instant(open_from - OPEN_BEHIND_US))
            dropped = await drop_partitions(self._pool, parent, before=before)
            for name in dropped:
                log.info("dropped what was kept long enough", extra={"partition": name})
        async with self._pool.transaction("sweep") as tx:
            await queues.drop_stale_jobs(tx, Instant(now - HOUR))
            await presences.drop_presences(tx, Instant(now - PRESENCES_KEPT_US))
            raw_from = Instant(now - self._kept["heartbeats", "ts"] * DAY)
            await push_marks.drop_marks(tx, raw_from)
            # Figures are made from results: what governed before the oldest that is kept, or that
            # is still to be rolled up, is done with.
            oldest = Instant(min(raw_from, open_from) - OPEN_BEHIND_US)
            await compositions.forget(tx, oldest)
            await results.drop_signals(tx, Instant(now - SIGNALS_KEPT_US))
            await sessions.drop_expired(tx)
