"""Deletion of packed results, with what was recorded when they were packed."""

from collections.abc import Collection

from ...core.instant import Instant
from ...core.key import MonitorKey
from ...engine.pools import Tx
from ..tables import latency_days, packing, packing_failures


async def delete_history_of(tx: Tx, keys: Collection[MonitorKey]) -> None:
    """Deletes the packed results of monitors that are deleted before in the same transaction."""
    await packing.delete_pieces_of(tx, keys)
    await packing_failures.delete_failures_of(tx, keys)
    await latency_days.delete_days_of(tx, keys)


async def delete_old_history(tx: Tx, before: Instant, most: int) -> int:
    """Deletes up to `most` pieces of each kind, and counted days, before the start of a day.

    Returns the largest of the numbers of deleted rows.
    """
    await packing_failures.delete_old_failures(tx, before)
    days = await latency_days.delete_old_days(tx, before, most)
    return max(days, await packing.delete_old_pieces(tx, before, most))
