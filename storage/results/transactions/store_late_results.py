"""Late results of a packed range: its pieces are taken, changed and packed again."""

from collections.abc import Sequence
from typing import Final

from ...core.instant import Instant
from ...core.key import MonitorKey
from ...core.time_span import TimeSpan
from ...engine.pools import Rejected, Tx
from ..rules.late_result import SettledWindow, StoredHeartbeat, add_heartbeats, settle_late
from ..rules.packed_days import week_of
from ..tables import latency_days, packing, packing_failures, results
from ..tables import packed_results as packed

# A row that is packed alone needs nothing of the encoding but the values themselves.
ONE_ROW: Final = 1


async def store_late_results(
    tx: Tx,
    key: MonitorKey,
    day: TimeSpan,
    heartbeats: Sequence[StoredHeartbeat],
    windows: Sequence[SettledWindow],
) -> tuple[set[Instant], set[Instant]]:
    """Stores late rows of a packed day, and returns the added instants and written windows.

    The state of the monitor and its pieces are locked, so that two transactions do not change its
    pieces at the same time. Nothing is stored for a deleted monitor. Raises DamagedPiece if the
    pieces are damaged: packing them again would hide it.
    """
    if not await results.lock_states(tx, [key]):
        return set(), set()
    await packing.lock_pieces(tx, key)
    week = week_of(day.from_)
    # The pieces of the whole week, if they are merged.
    span = week if await packing.is_crossed(tx, key, day, week) else day
    await packed.verify_pieces(tx, [key], span)
    stored, settled = await packed.take_pieces(tx, key, span)
    all_heartbeats, added = add_heartbeats(stored, heartbeats)
    all_windows, written = settle_late(settled, windows)
    try:
        async with tx.savepoint():
            await packed.put_pieces(tx, key, span, all_heartbeats, all_windows)
    except Rejected as error:
        await packed.put_pieces(tx, key, span, all_heartbeats, all_windows, ONE_ROW)
        await packing_failures.insert_failure(tx, key, day.from_, str(error))
    if added:
        await latency_days.put_days_from_pieces(tx, [key], day)
    return added, written
