"""Merging of the pieces of slow monitors, one week at a time, in steps of bounded work.

A piece of a day with few rows is mostly header. When all days of a week are packed, the pieces of a
monitor with at most MERGED_MOST rows in it are packed together. Readers see the old or the new
pieces. An interrupted step leaves nothing, and the next one begins at the same monitor.

The days that an earlier version packed without counting their latencies are counted here.
"""

from ...core.instant import Instant
from ...core.key import MonitorKey
from ...engine.pools import Tx
from ..rules.packed_days import day_of, week_of
from ..tables import latency_days, packing
from .pack_apart import Causes, merge_apart
from .pack_day import PackOutcome, PackStep

_NO_MONITOR = MonitorKey((0, 0))


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
    keys = await packing.lock_free_pieces(tx, found)
    if not keys:
        return PackStep(PackOutcome.LATE_WRITER)
    for key, day in await latency_days.select_missing(tx, keys, week):
        await latency_days.put_days_from_pieces(tx, [key], day_of(day))
    rows, causes = 0, Causes()
    for packed in packing.PACKED:
        if few := await packing.select_few_rows(tx, keys, week, packed):
            merged, failed = await merge_apart(tx, packed, few, week)
            rows, causes = rows + merged, causes | failed
    await packing.move_merged(tx, week.from_, keys[-1])
    return PackStep(PackOutcome.MONITORS, len(keys), rows, causes)
