"""Merging of the pieces of slow monitors, one week at a time, in steps of bounded work.

A piece of a day with few rows is mostly header. When all days of a week are packed, the pieces of a
monitor with at most MERGED_MOST rows in it are packed together. Readers see the old or the new
pieces. An interrupted step changes no row, and the next one begins at the same monitor.

Days whose latencies or failures were not counted by an earlier version are counted here. Migration
0065 lets the merger read merged weeks again for this.
"""

from collections.abc import Sequence
from typing import Final

from ...core.instant import Instant
from ...core.key import MonitorKey
from ...core.time_span import TimeSpan
from ...engine.pools import Tx
from ..rules.packed_days import day_of, week_of
from ..tables import latency_days, packing
from .pack_apart import Causes, merge_apart
from .pack_day import PackOutcome, PackStep

_NO_MONITOR: Final = MonitorKey((0, 0))
# Results of a step that are decoded to count the latencies of their days. One day can have more.
COUNTED_MOST: Final = 20_000
# Advisory locks of a step. The lock table of PostgreSQL has about 64 places for each connection.
LOCKED_MOST: Final = 200


async def merge_some(tx: Tx, most: int) -> PackStep:
    """Merges the pieces of up to `most` monitors in the next week whose days are all packed."""
    state = await packing.lock_packing(tx)
    if state is None:
        return PackStep(PackOutcome.BUSY)
    start: Instant | None = state.merged_through
    if start == 0:
        start = await packing.select_first_piece(tx)
    if start is None or week_of(start).until > state.packed_through:
        return PackStep(PackOutcome.NOTHING)
    week = week_of(start)
    after = MonitorKey((state.merged_org, state.merged_monitor))
    found = await packing.lock_next_monitors(tx, after, most)
    if not found:
        await packing.move_merged(tx, week.until, _NO_MONITOR)
        return PackStep(PackOutcome.WEEK)
    wanted = await _wanted(tx, found, week)
    locked = wanted[:LOCKED_MOST]
    free = await packing.lock_free_pieces(tx, locked)
    keys = found
    if len(free) < len(wanted):
        keys = [key for key in found if key < wanted[len(free)]]
        if not keys:
            return PackStep(PackOutcome.LATE_WRITER)
    counted, uncounted = await _count_days(tx, free, week)
    if uncounted is not None:
        keys = [key for key in keys if key < uncounted]
        free = [key for key in free if key < uncounted]
    rows, causes = counted, Causes()
    for packed in packing.PACKED:
        if few := await packing.select_few_rows(tx, free, week, packed):
            merged, failed = await merge_apart(tx, packed, few, week)
            rows, causes = rows + merged, causes | failed
    if keys:
        await packing.move_merged(tx, week.from_, keys[-1])
    return PackStep(PackOutcome.MONITORS, max(len(keys), 1), rows, causes)


async def _count_days(
    tx: Tx, keys: Sequence[MonitorKey], week: TimeSpan
) -> tuple[int, MonitorKey | None]:
    """Counts days that are not counted, of about COUNTED_MOST results.

    Reads again which they are, because a late writer can have changed the pieces before the locks.
    Returns the decoded results, and the first monitor with a day that is left for the next step.
    """
    counted = 0
    for key, day, results in await latency_days.select_missing(tx, keys, week):
        if counted and counted + results > COUNTED_MOST:
            return counted, key
        await latency_days.put_days_from_pieces(tx, [key], day_of(day))
        counted += results
    return counted, None


async def _wanted(tx: Tx, keys: Sequence[MonitorKey], week: TimeSpan) -> list[MonitorKey]:
    """Returns the monitors whose pieces are read or changed."""
    found = {key for key, _, _ in await latency_days.select_missing(tx, keys, week)}
    for packed in packing.PACKED:
        found.update(await packing.select_few_rows(tx, keys, week, packed))
    return sorted(found)
