"""Result packer: packs closed days, merges pieces of slow monitors, and drops packed partitions."""

import logging
from collections.abc import Callable
from typing import Final

import trio

from ...storage.core.instant import MINUTE, Instant
from ...storage.engine.partitions import drop_partitions, partitions
from ...storage.engine.pools import Pool, Rejected, Tx
from ...storage.results.rules.packed_days import days_to_pack
from ...storage.results.tables import packing
from ...storage.results.tables.packing_failures import count_failures
from ...storage.results.transactions.merge_week import merge_some
from ...storage.results.transactions.pack_day import PackOutcome, PackStep, pack_some
from ...storage.scheduling.tables import presences

log = logging.getLogger("leadline.result_packer")

PAUSE_SECONDS: Final = 0.05
# Rest without a day to pack, and while the process has no time for it.
IDLE_SECONDS: Final = 60.0
BUSY_SECONDS: Final = 10.0
FAILED_SECONDS: Final = 600.0
LATE_WRITER_SECONDS: Final = 1.0
# The loop rests for this many times the duration of a step, so that packing uses at most a fifth of
# one core.
REST_FACTOR: Final = 4.0
# Rows of a step. The number of monitors of the next step follows from the rows of the last one.
ROWS_AT_ONCE: Final = 20_000
MONITORS_AT_FIRST: Final = 10
MONITORS_MOST: Final = 2_000
STEP_TIMEOUT_SECONDS: Final = 60.0
# A reader whose snapshot is older than the end of a day still reads the rows of its partitions. No
# transaction of a reader is open for so long.
DROPPED_AFTER_US: Final = 10 * MINUTE
# A process of another version was seen within this time: it may not know pieces.
OTHER_VERSION_US: Final = 10 * MINUTE
TABLES: Final = ("heartbeats", "expected_runs")
_WORK: Final = (PackOutcome.MONITORS, PackOutcome.GAP, PackOutcome.DAY, PackOutcome.WEEK)


class ResultPacker:
    """Packs one part of a day in each pass, or merges one part of a week if no day can be packed.

    `packed_rows` counts the rows of this process. `days_left` is the number of closed days that are
    old enough and not packed, None before the first pass. `failures` is the number of days of
    monitors that were not packed as usual, None before the first pass.
    """

    def __init__(
        self,
        pool: Pool,
        clock: Callable[[], Instant],
        version: str,
        is_busy: Callable[[], bool],
    ) -> None:
        self._pool = pool
        self._clock = clock
        self._version = version
        self._is_busy = is_busy
        self._monitors = MONITORS_AT_FIRST
        self._merged_monitors = MONITORS_AT_FIRST
        self._rest_seconds = IDLE_SECONDS
        # The region that packing waits for, as it was logged.
        self._waits_for = ""
        self.packed_rows = 0
        self.days_left: int | None = None
        self.failures: int | None = None

    def rest_seconds(self) -> float:
        return self._rest_seconds

    async def pass_once(self) -> PackOutcome:
        """Packs the next part of a day. Without one, merges pieces, and drops packed partitions."""
        self._rest_seconds = BUSY_SECONDS
        if self._is_busy():
            return PackOutcome.BUSY
        begun = trio.current_time()
        oldest = await self._oldest()
        try:
            step = await self._step(oldest)
        except Rejected as error:
            # The rows of the day stay in the tables, and are read from there.
            log.error("results not packed", extra={"cause": str(error)})
            self._rest_seconds = FAILED_SECONDS
            return PackOutcome.NOTHING
        seconds = trio.current_time() - begun
        if step.outcome in _WORK:
            self._rest_seconds = seconds * REST_FACTOR
        elif step.outcome is PackOutcome.NOTHING:
            self._rest_seconds = IDLE_SECONDS
        elif step.outcome is PackOutcome.LATE_WRITER:
            self._rest_seconds = LATE_WRITER_SECONDS
        if step.outcome in (PackOutcome.DAY, PackOutcome.NOTHING):
            await self._drop()
        return step.outcome

    async def _step(self, oldest: list[Instant]) -> PackStep:
        step = await self._pool.transact(
            "pack_day",
            lambda tx: self._pack(tx, oldest),
            statement_timeout_seconds=STEP_TIMEOUT_SECONDS,
        )
        if step.waits_for and step.waits_for != self._waits_for:
            given = {"region": step.waits_for, "days_left": self.days_left}
            log.error("results not packed, windows are not settled", extra=given)
        self._waits_for = step.waits_for
        if step.outcome is not PackOutcome.NOTHING:
            self._count(step)
            _log_failures(step)
            return step
        step = await self._pool.transact(
            "merge_week",
            lambda tx: merge_some(tx, self._merged_monitors),
            statement_timeout_seconds=STEP_TIMEOUT_SECONDS,
        )
        _log_failures(step)
        if step.monitors:
            self._merged_monitors = _fitting(step)
        return step

    async def _pack(self, tx: Tx, oldest: list[Instant]) -> PackStep:
        since = Instant(tx.now - OTHER_VERSION_US)
        if await presences.select_other_versions(tx, self._version, since):
            return PackStep(PackOutcome.BUSY)
        state = await packing.select_packing(tx)
        self.failures = await count_failures(tx)
        begin = max([state.packed_through, min(oldest, default=state.packed_through)])
        self.days_left = days_to_pack(begin, tx.now)
        return await pack_some(tx, oldest, self._monitors)

    def _count(self, step: PackStep) -> None:
        """Chooses the number of monitors of the next step by the rows of this one."""
        self.packed_rows += step.rows
        if step.monitors:
            self._monitors = _fitting(step)
        elif step.outcome is PackOutcome.DAY:
            self._monitors = MONITORS_AT_FIRST
            log.info("day of results packed", extra={"days_left": (self.days_left or 1) - 1})

    async def _oldest(self) -> list[Instant]:
        """Returns the start of the oldest partition of each table."""
        return [
            found[0].from_ for table in TABLES if (found := await partitions(self._pool, table))
        ]

    async def _drop(self) -> None:
        async with self._pool.transaction("read_packing", read_only=True) as tx:
            state = await packing.select_packing(tx)
        if state.moved_at > self._clock() - DROPPED_AFTER_US:
            return
        for table in TABLES:
            for name in await drop_partitions(self._pool, table, before=state.packed_through):
                log.info("packed partition dropped", extra={"partition": name})


def _fitting(step: PackStep) -> int:
    """Returns the number of monitors of the next step, whose rows should be ROWS_AT_ONCE."""
    fitting = step.monitors * ROWS_AT_ONCE // max(step.rows, 1)
    # Monitors differ: the number at most doubles.
    return max(1, min(fitting, 2 * step.monitors, MONITORS_MOST))


def _log_failures(step: PackStep) -> None:
    for (org, monitor), cause in step.failures.items():
        given = {"org": org, "monitor": monitor, "cause": cause}
        log.error("results of a monitor not packed as usual", extra=given)
