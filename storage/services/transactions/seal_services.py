"""Tells the time of services as far as all is sealed that they are made of, and writes it down.

It keeps true: every minute from a service's beginning to where it is sealed is written once, under
the epoch that governed it; the seal moves forward only, in the transaction that writes what lies
before it. Who holds a service reads its members' results after that: what came late before this is
in them, and what comes later is restated under the same hold.
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

# After a long absence, or for a past that is reconstructed, so much at once of each.
STRETCH_MOST_US: Final = 2 * HOUR


@dataclass(frozen=True, slots=True)
class SealedService:
    """A service is sealed `to` there; its members are to their `mark`."""

    to: Instant
    mark: Instant


async def seal_services(tx: Tx, keys: Sequence[ServiceKey]) -> dict[ServiceKey, SealedService]:
    """Seals each that nobody else holds as far as its members are, or so far as one pass may go."""
    rows = await services.lock_services(tx, keys, skip_locked=True)
    since = {key: row.sealed_through for key, row in rows.items() if row.sealed_through is not None}
    if not since:
        return {}
    governed_by = await select_governed(tx, since, tx.now)
    marks = await select_watermarks(tx, governed_by, since)
    ranges = {}
    for key, start in since.items():
        # Who does not know yet that the clock has jumped knows of no epoch that began since.
        known = min(marks[key], tx.now)
        whole = Instant(known - known % MINUTE)
        if whole > start:
            ranges[key] = TimeSpan(start, min(whole, Instant(start + STRETCH_MOST_US)))
    to = {key: span.until for key, span in ranges.items()}
    await _write(tx, governed_by, ranges, to)
    await services.advance_seals(tx, to)
    return {key: SealedService(to.get(key, start), marks[key]) for key, start in since.items()}


async def reconstruct(tx: Tx, key: ServiceKey) -> bool:
    """Tells a stretch before the beginning of a service's time, by its first declaration; whether
    there is more of it."""
    row = (await services.lock_services(tx, [key], skip_locked=True)).get(key)
    if row is None:
        return False
    start, sealed, first = row.materialization_start, row.sealed_through, row.backfill_from
    # Once what lies before its beginning is sealed.
    if start is None or sealed is None or first is None or not first < start < sealed:
        return False
    # From a whole hour on: an hour that is made in two parts would be made of minutes that may be
    # forgotten by then.
    from_ = start - STRETCH_MOST_US
    range_ = TimeSpan(max(first, Instant(from_ - from_ % HOUR)), start)
    governed_by = await select_governed(tx, [key], max(tx.now, sealed))
    await _write(tx, governed_by, {key: range_}, {key: sealed})
    await services.set_materialization_start(tx, key, range_.from_)
    return range_.from_ > first


async def restate_services(tx: Tx, rows: Mapping[ServiceKey, ServiceRow], within: TimeSpan) -> None:
    """Makes the minutes again that lie in a stretch and are sealed, and what is made of them. The
    services are held."""
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
    assert minutes is not None, "nothing keeps it from going on"
    await service_facts.replace_minutes(tx, ranges, minutes)
    await service_facts.put_sums(tx, ranges, through)
