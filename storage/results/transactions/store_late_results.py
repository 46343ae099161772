"""Late results of a packed range: its pieces are taken, changed and packed again."""

from collections.abc import Sequence

from ...core.instant import Instant
from ...core.key import MonitorKey
from ...core.time_span import TimeSpan
from ...engine.pools import Tx
from ..rules.late_result import SettledWindow, StoredHeartbeat, add_heartbeats, settle_late
from ..tables import packed_results as packed
from ..tables import results


async def store_late_results(
    tx: Tx,
    key: MonitorKey,
    span: TimeSpan,
    heartbeats: Sequence[StoredHeartbeat],
    windows: Sequence[SettledWindow],
) -> tuple[set[Instant], set[Instant]]:
    """Stores late rows of a packed span, and returns the added instants and written windows.

    All rows are in the span, which no piece crosses. The state of the monitor is locked, so that
    two transactions do not change its pieces at the same time. Nothing is stored for a deleted
    monitor. Raises DamagedPiece if the pieces are damaged: packing them again would hide it.
    """
    if not await results.lock_states(tx, [key]):
        return set(), set()
    await packed.verify_pieces(tx, [key], span)
    stored, settled = await packed.take_pieces(tx, key, span)
    all_heartbeats, added = add_heartbeats(stored, heartbeats)
    all_windows, written = settle_late(settled, windows)
    await packed.put_pieces(tx, key, span, all_heartbeats, all_windows)
    return added, written
