"""Moves a shard's cursor over what is due, and writes every window that lies behind it."""

from collections.abc import Sequence
from uuid import UUID

from ...core.instant import MINUTE, Instant
from ...engine.pools import Tx
from ..rows import Shard
from ..rules.run_batch import DueWindow, RunBatch, cut
from ..tables import shards as schedules

# One statement moves at most this much of a schedule: after an outage it takes several.
STEP_US = MINUTE


def step_end(reserved_through: Instant, now: Instant) -> Instant:
    """How far one reservation goes."""
    return min(now, Instant(reserved_through + STEP_US))


async def reserve_windows(
    tx: Tx, shard: Shard, through: Instant, due: Sequence[DueWindow], holder: UUID | None
) -> list[tuple[int, RunBatch]] | None:
    """The batches that were written, with their keys; None where another scheduler was here first
    or an edit has changed what is due. `holder` takes the runnable batches at once."""
    batches, spared = cut(due, tx.now)
    keys = await schedules.reserve(tx, shard, through, batches, spared, holder)
    if keys is None:
        return None
    return list(zip(keys, batches, strict=True))
