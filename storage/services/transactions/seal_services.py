"""Sealing of services up to the watermark of their members.

Invariants: every minute from the start of a service to its seal is written once, under the epoch
that governed it. The seal only advances, in the transaction that writes the time before it. Results
are read under the lock of the service. They include earlier late results; a later one is repaired
under the same lock.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ...core.instant import HOUR, MINUTE, Instant
from ...core.key import ServiceKey
from ...core.time_span import TimeSpan
from ...engine.pools import Tx
from ..queries.service_time import ServiceTimeline, minutes_of, select_governed, select_watermarks
from ..rows import ServiceRow
from ..rules.epoch import Epoch
from ..tables import service_minutes as service_facts
from ..tables import service_revisions as declarations
from ..tables import services

# Longest time per service and pass, for a long backlog or a reconstruction.
STRETCH_MOST_US: Final = 2 * HOUR


@dataclass(frozen=True, slots=True)
class SealedService:
    """Seal of a service and the watermark of its members."""

    to: Instant
    mark: Instant


async def seal_services(tx: Tx, keys: Sequence[ServiceKey]) -> dict[ServiceKey, SealedService]:
    """Seals unlocked services up to their watermarks, at most `STRETCH_MOST_US` each."""
    rows = await services.lock_services(tx, keys, skip_locked=True)
    since = {key: row.sealed_through for key, row in rows.items() if row.sealed_through is not None}
    if not since:
        return {}
    governed_by = await select_governed(tx, since, tx.now)
    marks = await select_watermarks(tx, governed_by, since)
    ranges = {}
    for key, start in since.items():
        # A process whose clock lags cannot know the epochs after its own present.
        known = min(marks[key], tx.now)
        whole = Instant(known - known % MINUTE)
        if whole > start:
            ranges[key] = TimeSpan(start, min(whole, Instant(start + STRETCH_MOST_US)))
    to = {key: span.until for key, span in ranges.items()}
    await _write(tx, governed_by, ranges, to)
    await services.advance_seals(tx, to)
    return {key: SealedService(to.get(key, start), marks[key]) for key, start in since.items()}


async def reconstruct(tx: Tx, key: ServiceKey) -> bool:
    """Reconstructs a part of the time before a service's start. Returns whether more remains."""
    row = (await services.lock_services(tx, [key], skip_locked=True)).get(key)
    if row is None:
        return False
    start, sealed, first = row.materialization_start, row.sealed_through, row.backfill_from
    # Reconstruction starts after the first seal.
    if start is None or sealed is None or first is None or not first < start < sealed:
        return False
    # Starts at a whole hour. The minutes of one half of an hour could be deleted before the other
    # half is written.
    from_ = start - STRETCH_MOST_US
    range_ = TimeSpan(max(first, Instant(from_ - from_ % HOUR)), start)
    governed_by = await select_governed(tx, [key], max(tx.now, sealed))
    await _write(tx, governed_by, {key: range_}, {key: sealed})
    await services.set_materialization_start(tx, key, range_.from_)
    return range_.from_ > first


async def restate_services(tx: Tx, rows: Mapping[ServiceKey, ServiceRow], within: TimeSpan) -> None:
    """Recomputes the sealed minutes of locked services in a span, and their sums."""
    whole = TimeSpan(
        Instant(within.from_ - within.from_ % MINUTE),
        Instant(within.until + (-within.until) % MINUTE),
    )
    ranges: dict[ServiceKey, TimeSpan] = {}
    through: dict[ServiceKey, Instant] = {}
    for key, row in rows.items():
        if row.materialization_start is None or row.sealed_through is None:
            continue
        span = TimeSpan(
            max(whole.from_, row.materialization_start), min(whole.until, row.sealed_through)
        )
        if span.from_ < span.until:
            ranges[key], through[key] = span, row.sealed_through
    if ranges:
        governed_by = await select_governed(tx, ranges, max(tx.now, *through.values()))
        await _write(tx, governed_by, ranges, through)


async def _write(
    tx: Tx,
    governed_by: Mapping[ServiceKey, ServiceTimeline],
    ranges: dict[ServiceKey, TimeSpan],
    through: dict[ServiceKey, Instant],
) -> None:
    if not ranges:
        return
    known: dict[ServiceKey, Sequence[Epoch]] = {key: governed_by[key].epochs for key in ranges}
    numbers = await declarations.put_epochs(tx, known)
    minutes = await minutes_of(tx, governed_by, ranges, numbers)
    assert minutes is not None, "the default may_go_on never stops"
    await service_facts.replace_minutes(tx, ranges, minutes)
    await service_facts.put_sums(tx, ranges, through)
