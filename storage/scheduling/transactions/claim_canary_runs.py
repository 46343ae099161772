"""Claims canary runs for one holder, within the free slots of the region."""

from collections.abc import Collection, Sequence
from typing import Final
from uuid import UUID

import msgspec

from ...core.instant import Instant
from ...core.key import MonitorKey
from ...engine.pools import Tx
from ..rows import OpenBatch
from ..rules.run_batch import CANARY
from ..rules.run_schedule import CLAIMABLE_US
from ..tables import canary_runs
from ..tables import work_queues as queues
from .split_batch import split_batch

# Batches per read and the number of reads. Unclaimable batches can precede claimable ones.
BATCHES_AT_ONCE: Final = 8
LOOKS_MOST: Final = 10
JOBS_AT_ONCE: Final = 20
# Longer than any claim period, so that a run that has begun is not restarted by another holder.
HELD_US: Final = 2 * CLAIMABLE_US


class ClaimedRun(msgspec.Struct, frozen=True):
    """Claimed run. `due` is None for a run without a window."""

    key: MonitorKey
    shard: int
    due: Instant | None


async def claim_canary_runs(
    tx: Tx,
    region: str,
    shards: Sequence[int],
    holder: UUID,
    places: int,
    most: int,
    *,
    by_agent: bool = False,
) -> list[ClaimedRun]:
    """Claims at most `most` due runs. Each occupies a slot of the region from this commit.

    An agent has no presence, and claims only windows.
    """
    await canary_runs.release_slots(tx, [region])
    running = await canary_runs.select_runs(tx, region)
    room = min(most, places - len(running))
    taken = [] if by_agent else await _claim_jobs(tx, region, shards, holder, places, room)
    busy = {(run.org, run.monitor) for run in running} | {item.key for item in taken}
    after = 0
    for _ in range(LOOKS_MOST):
        if len(taken) >= room:
            break
        found = await queues.lock_open_batches(tx, shards, after, BATCHES_AT_ONCE, CANARY)
        settled = await queues.select_settled(tx, [item.id for item in found])
        for item in found:
            positions = []
            for position, (key, due) in _open_windows(item, settled, tx.now):
                if len(taken) >= room or key in busy:
                    continue
                if await canary_runs.acquire_slot(
                    tx, region, key, due, holder, places, leases=by_agent
                ):
                    positions.append(position)
                    busy.add(key)
                    taken.append(ClaimedRun(key, item.shard, due))
            if positions:
                chosen, left = split_batch(item, positions)
                await queues.split_batch(tx, chosen, left, holder, Instant(tx.now + HELD_US))
        if len(found) < BATCHES_AT_ONCE:
            break
        after = found[-1].id
    return taken


def _open_windows(
    item: OpenBatch, settled: Collection[tuple[int, int, Instant]], now: Instant
) -> list[tuple[int, tuple[MonitorKey, Instant]]]:
    """Returns positions and windows that are due, claimable and without a result."""
    keys = map(MonitorKey, zip(item.orgs, item.monitors, strict=True))
    return [
        (n, (key, item.due_ats[n]))
        for n, key in enumerate(keys)
        if item.due_ats[n] <= now < item.claim_untils[n] and (*key, item.due_ats[n]) not in settled
    ]


async def _claim_jobs(
    tx: Tx,
    region: str,
    shards: Sequence[int],
    holder: UUID,
    places: int,
    most: int,
) -> list[ClaimedRun]:
    taken: list[ClaimedRun] = []
    for job in await queues.lock_canary_jobs(tx, shards, JOBS_AT_ONCE):
        key = MonitorKey((job.org, job.monitor))
        if len(taken) >= most:
            break
        if await canary_runs.acquire_slot(tx, region, key, None, holder, places):
            taken.append(ClaimedRun(key, job.shard, None))
            await queues.delete_jobs(tx, [job])
    return taken
