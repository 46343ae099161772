"""Packing of closed days: one step of bounded work, in one transaction.

A day is packed monitor by monitor, while readers and writers still use its rows in the tables. When
every monitor has its pieces, one update moves `packed_through` past the day: from its commit on,
readers and late writers use the pieces. The partitions of the day are dropped later. An interrupted
step changes no row, and the next one begins at the same monitor.

Invariant: the cursor belongs to the day that begins at `packed_through`. If the partitions of that
day were dropped, a step of its own moves both to the next day with partitions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from ...core.instant import EARLIEST, HOUR, Instant
from ...core.key import MonitorKey
from ...core.time_span import TimeSpan
from ...engine.pools import Tx
from ..rules.packed_days import day_of, days_to_pack, is_sealed_day
from ..tables import latency_days, packing
from .pack_apart import Causes, pack_apart

# A shard that delays packing for longer is reported.
STUCK_AFTER_US: Final = 6 * HOUR


class PackOutcome(StrEnum):
    """Outcome of a step."""

    # Another process packs.
    BUSY = "busy"
    # No day can be packed yet.
    NOTHING = "nothing"
    # Some monitors were packed.
    MONITORS = "monitors"
    # `packed_through` moved over days without partitions.
    GAP = "gap"
    # All monitors of the day are packed: its rows are now read from the pieces.
    DAY = "day"
    # All monitors of a week are merged.
    WEEK = "week"
    # A late writer was active. The step is repeated.
    LATE_WRITER = "late_writer"


@dataclass(frozen=True, slots=True)
class PackStep:
    """`rows` are the packed heartbeats and ledger rows of `monitors` monitors.

    `failures` are the causes for monitors that were not packed as usual. `waits_for` is the region
    of the shard that was settled the shortest way, if its day is not packed for this reason.
    """

    outcome: PackOutcome
    monitors: int = 0
    rows: int = 0
    failures: Mapping[MonitorKey, str] = field(default_factory=dict)
    waits_for: str = ""


def next_day(packed_through: Instant, oldest: Sequence[Instant]) -> TimeSpan:
    """Returns the next day to pack. `oldest` has the first instant of each table."""
    return day_of(max(packed_through, min(oldest, default=EARLIEST)))


async def pack_some(tx: Tx, oldest: Sequence[Instant], most: int) -> PackStep:
    """Packs the next day of up to `most` monitors.

    Raises Rejected if rows of a monitor cannot be packed in any form; nothing is changed then.
    """
    state = await packing.lock_packing(tx)
    if state is None:
        return PackStep(PackOutcome.BUSY)
    day = next_day(state.packed_through, oldest)
    settled = await packing.select_least_settled(tx)
    if settled is None:
        return PackStep(PackOutcome.NOTHING)
    if not is_sealed_day(day, settled[0], await packing.select_first_open(tx)):
        is_old = days_to_pack(Instant(day.from_ + STUCK_AFTER_US), tx.now) > 0
        return PackStep(PackOutcome.NOTHING, waits_for=settled[1] if is_old else "")
    if day.from_ > state.packed_through:
        return await _skip_gap(tx, day.from_, oldest)
    keys = await packing.lock_next_monitors(tx, MonitorKey((state.org, state.monitor)), most)
    if keys:
        rows, causes = await pack_apart(tx, keys, day)
        await latency_days.put_days_from_rows(tx, keys, day)
        await packing.move_cursor(tx, keys[-1])
        return PackStep(PackOutcome.MONITORS, len(keys), rows, causes)
    return await _pack_late(tx, day) or await _advance(tx, day)


async def _pack_late(tx: Tx, day: TimeSpan) -> PackStep | None:
    """Packs one monitor again that has late rows since its day was packed, None without one."""
    late = await packing.select_late_day(tx, day.from_)
    if late is None:
        return None
    rows, causes = 0, Causes()
    if await packing.lock_monitor(tx, late.key):
        await packing.delete_pieces(tx, late.key, day)
        rows, causes = await pack_apart(tx, [late.key], day)
        await latency_days.put_days_from_rows(tx, [late.key], day)
    # Only the marks that were read before the rows.
    await packing.delete_late_writes(tx, late)
    return PackStep(PackOutcome.MONITORS, 1, rows, causes)


async def _skip_gap(tx: Tx, through: Instant, oldest: Sequence[Instant]) -> PackStep:
    """Moves `packed_through` to a day, over days that were deleted before they were packed."""
    if not await packing.skip_days(tx, through, kept_from=max(oldest, default=through)):
        return PackStep(PackOutcome.LATE_WRITER)
    return PackStep(PackOutcome.GAP)


async def _advance(tx: Tx, day: TimeSpan) -> PackStep:
    """Moves `packed_through` past the day."""
    if not await packing.advance_packed(tx, day):
        return PackStep(PackOutcome.LATE_WRITER)
    return PackStep(PackOutcome.DAY)
