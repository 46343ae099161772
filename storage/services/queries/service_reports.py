"""Sealed time of services over a window, read from days, hours and minutes.

A range is cut at its whole days and hours, so that 90 days need about 90 rows. The sums are exact,
because hours and days are sums of the same minutes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import msgspec

from ...core.instant import DAY, HOUR, LATEST, Instant
from ...core.key import ServiceKey
from ...core.time_span import TimeSpan, merged
from ...engine.pools import Tx
from ..rows import EpochRow, ServiceRow
from ..rules.epoch import Revision, governed
from ..rules.service_health import Durations
from ..rules.service_report import (
    WINDOWS,
    BurnWindow,
    ReportWindow,
    Segment,
    burn_of,
    whole_minutes,
    window_of,
)
from ..tables import service_revisions as declarations
from . import service_revisions

_US = (
    "good_us, bad_us, unknown_us, excluded_us, healthy_us, degraded_us, down_us, health_unknown_us"
)
_SUMS = ", ".join(f"sum({name})::bigint" for name in _US.split(", "))
_MINUTE_SUMS = ", ".join(f"sum(n.count * m.{name})::bigint" for name in _US.split(", "))
_RANGES = """
json_to_recordset(%(items)s::json)
  as i(place int, org int, service int, from_at bigint, until_at bigint)
"""
# A lateral join with one index lookup per range; the planner would otherwise scan all services. A
# run starts less than a day before a minute that it contains.
_FROM_MINUTES = f"""
select i.place, x.* from {_RANGES} cross join lateral (
  select m.epoch, sum(n.count)::int, {_MINUTE_SUMS}
  from service_minutes m
    cross join lateral (select (extract(epoch from least(m.until_at, at(i.until_at))
      - greatest(m.from_at, at(i.from_at))) / 60)::bigint) as n(count)
  where m.org = i.org and m.service = i.service
    and m.from_at > at(i.from_at) - interval '1 day' and m.from_at < at(i.until_at)
    and m.until_at > at(i.from_at)
  group by m.epoch) x
"""
_FROM_HOURS = f"""
select i.place, x.* from {_RANGES} cross join lateral (
  select h.epoch, sum(h.minutes)::int, {_SUMS}
  from service_hours h
  where h.org = i.org and h.service = i.service
    and h.start >= at(i.from_at) and h.start < at(i.until_at)
  group by h.epoch) x
"""
_FROM_DAYS = _FROM_HOURS.replace("service_hours", "service_days")
# Only whole days; the last day is summed from hours and minutes.
_WHOLE_DAYS = f"""
select i.place, d.start, sum(d.minutes)::int, {_SUMS}
from {_RANGES} join service_days d on d.org = i.org and d.service = i.service
  and d.start >= at(i.from_at) and d.start < at(i.until_at)
group by i.place, d.start
"""
_SERIES = f"""
select h.start, h.epoch, h.minutes, {_US} from {{table}} h
where h.org = %(org)s and h.service = %(service)s
  and h.start >= at(%(from_at)s) and h.start < at(%(until_at)s)
order by h.start, h.epoch
"""
# Repairs that overlap the sealed time of the service, of its members and of the children of
# composite members.
_REPAIRING = """
with recursive part(monitor) as (
  select distinct m from service_revisions r cross join unnest(r.sli) as m
  where r.org = %(org)s and r.service = %(service)s
  union
  select child from part p join composite_terms c on c.org = %(org)s and c.monitor = p.monitor
    and c.until_at > at(%(from_at)s)
    cross join unnest(c.children) as child)
select r.from_at, r.to_at, r.reason, r.attempts, r.last_error
from part p join repairs r on r.org = %(org)s and r.monitor = p.monitor
where r.to_at > at(%(from_at)s) and r.from_at < at(%(until_at)s)
order by r.from_at, r.to_at limit %(most)s
"""
_REPAIRING_COUNTS = """
with recursive part(service, monitor) as (
  select distinct r.service, m from service_revisions r cross join unnest(r.sli) as m
  where r.org = %(org)s and r.service = any(%(services)s)
  union
  select p.service, child from part p
    join composite_terms c on c.org = %(org)s and c.monitor = p.monitor
    cross join unnest(c.children) as child)
select p.service, count(*)
from repairs r join part p on r.org = %(org)s and p.monitor = r.monitor
  join services s on s.org = r.org and s.id = p.service
where r.from_at < s.sealed_through and r.to_at > s.materialization_start
group by p.service
"""
REPAIRS_MOST = 100
_UNITS = {"hour": HOUR, "day": DAY}
# Revisions and epochs by service.
Declared = tuple[Mapping[ServiceKey, Sequence[Revision]], Mapping[ServiceKey, Sequence[EpochRow]]]


class EpochSum(msgspec.Struct, frozen=True, gc=False):
    """Sum of the sealed minutes under one epoch."""

    minutes: int
    durations: Durations


# (start, epoch, sum)
Bucket = tuple[Instant, int, EpochSum]


@dataclass(frozen=True, slots=True)
class SeriesPoint:
    """Bucket of a series under one epoch. Provisional if not wholly sealed or under repair."""

    start: Instant
    epoch_uid: UUID
    revision_uid: UUID
    provisional: bool
    minutes: int
    durations: Durations


@dataclass(frozen=True, slots=True)
class Repair:
    """Range with a running or pending repair; the former figures remain until it ends."""

    from_: Instant
    to: Instant
    reason: str
    state: str
    cursor: Instant | None
    attempts: int
    last_error: str | None


async def select_declared(tx: Tx, services: Sequence[ServiceKey]) -> Declared:
    """Returns the revisions and the epochs of services."""
    revisions = await service_revisions.select_revisions(tx, services)
    return revisions, await declarations.select_epochs(tx, services)


async def select_window(tx: Tx, service: ServiceRow, window: str) -> ReportWindow:
    """Returns a window of `WINDOWS` that ends at the seal of the service."""
    return (await select_windows(tx, [service], window))[service.key]


async def select_windows(
    tx: Tx, services: Sequence[ServiceRow], window: str
) -> dict[ServiceKey, ReportWindow]:
    found = await _windows(tx, [(service, window) for service in services])
    return {key: one for (key, _), one in found.items()}


async def select_windows_of(
    tx: Tx, service: ServiceRow, windows: Sequence[str], declared: Declared | None = None
) -> dict[str, ReportWindow]:
    """Returns several windows of one service. `declared` is what this transaction has read."""
    found = await _windows(tx, [(service, window) for window in windows], declared)
    return {window: one for (_, window), one in found.items()}


async def _windows(
    tx: Tx, wanted: Sequence[tuple[ServiceRow, str]], declared: Declared | None = None
) -> dict[tuple[ServiceKey, str], ReportWindow]:
    keys = list(dict.fromkeys(service.key for service, _ in wanted))
    revisions, epochs = declared or await select_declared(tx, keys)
    ranges = {
        (service.key, window): span
        for service, window in wanted
        if (span := _covered(service, WINDOWS[window])) is not None
    }
    sums = await _sums(tx, [(key, span) for (key, _), span in ranges.items()])
    found = {}
    for service, window in wanted:
        key, span = service.key, ranges.get((service.key, window))
        by_epoch = sums.get((key, span), {}) if span else {}
        segments = _segments(span, by_epoch, epochs[key], revisions[key]) if span else []
        has_sli = any(revision.sli for _, revision in governed(revisions[key])[-1:])
        start, sealed = service.materialization_start, service.sealed_through
        found[key, window] = window_of(window, tx.now, has_sli, start, sealed, segments)
    return found


async def select_burns(
    tx: Tx, wanted: Sequence[tuple[ServiceRow, int, Sequence[int]]]
) -> dict[ServiceKey, list[BurnWindow]]:
    """Returns the burn windows per service, in the order of the lengths.

    Args:
        wanted: (service, objective × 10⁴, lengths in µs) per service.
    """
    ranges = [
        (service.key, span)
        for service, _, lengths in wanted
        for length in lengths
        if (span := _covered(service, length)) is not None
    ]
    sums = await _sums(tx, ranges)
    found: dict[ServiceKey, list[BurnWindow]] = {}
    for service, objective, lengths in wanted:
        for length in lengths:
            span = _covered(service, length)
            by_epoch = sums.get((service.key, span), {}).values() if span else ()
            minutes = sum(each.minutes for each in by_epoch)
            durations = sum((each.durations for each in by_epoch), Durations())
            start, sealed = service.materialization_start, service.sealed_through
            burn = burn_of(length, objective, start, sealed, minutes, durations)
            found.setdefault(service.key, []).append(burn)
    return found


async def select_sum(tx: Tx, service: ServiceKey, within: TimeSpan) -> EpochSum:
    """Returns the sum of the whole minutes in a range over all epochs."""
    found = (await _sums(tx, [(service, within)])).get((service, within), {}).values()
    return EpochSum(
        sum(each.minutes for each in found),
        sum((each.durations for each in found), Durations()),
    )


async def select_days(
    tx: Tx, services: Sequence[ServiceRow], first: Instant
) -> dict[ServiceKey, dict[Instant, EpochSum]]:
    """Returns the UTC days with sealed time of each service; the last day can be partial.

    Args:
        first: midnight of the first day.
    """
    wholes: list[tuple[int, ServiceKey, TimeSpan]] = []
    edges: list[tuple[ServiceKey, TimeSpan]] = []
    for place, service in enumerate(services):
        start, sealed = service.materialization_start, service.sealed_through
        if start is None or sealed is None or sealed <= max(start, first):
            continue
        last = Instant(sealed - sealed % DAY)
        wholes.append((place, service.key, TimeSpan(first, last)))
        if sealed > last:
            edges.append((service.key, TimeSpan(max(last, start), sealed)))
    found: dict[ServiceKey, dict[Instant, EpochSum]] = {service.key: {} for service in services}
    for place, day, minutes, *us in await tx.rows(_WHOLE_DAYS, items=_items(wholes)):
        found[services[place].key][day] = EpochSum(minutes, Durations(*us))
    for (key, span), by_epoch in (await _sums(tx, edges)).items():
        sums = by_epoch.values()
        durations = sum((each.durations for each in sums), Durations())
        day = Instant(span.from_ - span.from_ % DAY)
        found[key][day] = EpochSum(sum(each.minutes for each in sums), durations)
    return found


async def select_series(
    tx: Tx, service: ServiceRow, from_: Instant, to: Instant, step: str
) -> list[SeriesPoint]:
    """Returns the buckets that `select_buckets` sums, with what they depend on."""
    buckets = await select_buckets(tx, service, from_, to, step)
    return await _points(tx, service, buckets, _UNITS[step]) if buckets else []


async def select_buckets(
    tx: Tx, service: ServiceRow, from_: Instant, to: Instant, step: str
) -> list[Bucket]:
    """Returns the sums of the buckets that begin in [from, to), in order; empty without sealed
    time. A bucket has one sum for each of its epochs.

    Args:
        from_: instant, rounded down to the step.
        step: `hour` or `day`.
    """
    unit = _UNITS[step]
    start, sealed = service.materialization_start, service.sealed_through
    if start is None or sealed is None:
        return []
    within = TimeSpan(Instant(max(from_, start) - max(from_, start) % unit), min(to, sealed))
    if within.from_ >= within.until:
        return []
    query = _SERIES.replace("{table}", "service_hours" if unit == HOUR else "service_days")
    org, key = service.key
    # The bucket that was unfinished when the service was read is computed here. The stored bucket
    # is not read, because a later transaction may have written it.
    last = Instant(sealed - sealed % unit)
    until = min(within.until, last)
    rows = await tx.rows(query, org=org, service=key, from_at=within.from_, until_at=until)
    whole = [(at, epoch, EpochSum(minutes, Durations(*us))) for at, epoch, minutes, *us in rows]
    if within.from_ <= last < within.until:
        span = TimeSpan(max(last, start), sealed)
        edge = (await _sums(tx, [(service.key, span)])).get((service.key, span), {})
        whole += [(last, epoch, found) for epoch, found in sorted(edge.items())]
    return whole


async def select_repairing(
    tx: Tx, service: ServiceRow, most: int | None = REPAIRS_MOST
) -> list[Repair]:
    """Returns at most `most` repairs (None for all) and a pending reconstruction."""
    start, sealed = service.materialization_start, service.sealed_through
    if start is None or sealed is None:
        return []
    found = []
    if service.backfill_from is not None and service.backfill_from < start:
        found.append(
            Repair(service.backfill_from, start, "declared_backfill", "running", start, 0, None)
        )
    rows = await tx.rows(
        _REPAIRING,
        org=service.org,
        service=service.id,
        from_at=start,
        until_at=sealed,
        most=most,
    )
    for from_, to, reason, attempts, last_error in rows:
        state = "failed" if attempts else "pending"
        inside = TimeSpan(max(from_, start), min(to, sealed))
        found.append(Repair(inside.from_, inside.until, reason, state, None, attempts, last_error))
    return found


async def select_repairing_counts(tx: Tx, org: int, services: Sequence[int]) -> dict[int, int]:
    """Returns the number of pending repairs per service, for services with repairs."""
    return dict(await tx.rows(_REPAIRING_COUNTS, org=org, services=list(services)))


def _covered(service: ServiceRow, length_us: int) -> TimeSpan | None:
    """Returns the service's time within the whole minutes of a length before the seal."""
    start, sealed = service.materialization_start, service.sealed_through
    if start is None or sealed is None or sealed <= start:
        return None
    return TimeSpan(max(start, Instant(sealed - whole_minutes(length_us))), sealed)


async def _sums(
    tx: Tx, ranges: Iterable[tuple[ServiceKey, TimeSpan]]
) -> dict[tuple[ServiceKey, TimeSpan], dict[int, EpochSum]]:
    """Returns the sums by epoch for each range of whole minutes."""
    wanted = list(dict.fromkeys(ranges))
    minutes: list[tuple[int, ServiceKey, TimeSpan]] = []
    hours: list[tuple[int, ServiceKey, TimeSpan]] = []
    days: list[tuple[int, ServiceKey, TimeSpan]] = []
    for place, (key, span) in enumerate(wanted):
        outer, inner = _cut(span, HOUR)
        minutes += [(place, key, each) for each in outer]
        for whole in inner:
            around, within = _cut(whole, DAY)
            hours += [(place, key, each) for each in around]
            days += [(place, key, each) for each in within]
    found: dict[tuple[ServiceKey, TimeSpan], dict[int, EpochSum]] = {}
    for query, parts in ((_FROM_MINUTES, minutes), (_FROM_HOURS, hours), (_FROM_DAYS, days)):
        if not parts:
            continue
        for place, epoch, count, *us in await tx.rows(query, items=_items(parts)):
            by_epoch = found.setdefault(wanted[place], {})
            before = by_epoch.get(epoch, EpochSum(0, Durations()))
            by_epoch[epoch] = EpochSum(before.minutes + count, before.durations + Durations(*us))
    return found


def _cut(span: TimeSpan, unit: int) -> tuple[list[TimeSpan], list[TimeSpan]]:
    """Returns the parts of a span outside its whole units, and the span of the whole units."""
    first = Instant(span.from_ + (-span.from_) % unit)
    last = Instant(span.until - span.until % unit)
    if first >= last:
        return [span], []
    around = [TimeSpan(span.from_, first), TimeSpan(last, span.until)]
    return [each for each in around if each.from_ < each.until], [TimeSpan(first, last)]


def _items(parts: Sequence[tuple[int, ServiceKey, TimeSpan]]) -> str:
    items: list[dict[str, Any]] = [
        {"place": place, "org": key[0], "service": key[1], "from_at": s.from_, "until_at": s.until}
        for place, key, s in parts
    ]
    return msgspec.json.encode(items).decode()


def _segments(
    within: TimeSpan,
    by_epoch: Mapping[int, EpochSum],
    epochs: Sequence[EpochRow],
    revisions: Sequence[Revision],
) -> list[Segment]:
    of_number = {revision.revision: revision for revision in revisions}
    found = []
    for n, epoch in enumerate(epochs):
        if epoch.seq not in by_epoch:
            continue
        revision = of_number[epoch.revision]
        end = epochs[n + 1].effective_at if n + 1 < len(epochs) else LATEST
        found.append(
            Segment(
                revision=revision.revision,
                revision_uid=revision.uid,
                epoch=epoch.seq,
                epoch_uid=epoch.uid,
                from_=max(epoch.effective_at, within.from_),
                to=min(end, within.until),
                minutes=by_epoch[epoch.seq].minutes,
                durations=by_epoch[epoch.seq].durations,
                is_reconstruction=epoch.effective_at < revision.effective_at,
            )
        )
    return found


async def _points(
    tx: Tx, service: ServiceRow, buckets: Sequence[Bucket], unit: int
) -> list[SeriesPoint]:
    declared, terms = await select_declared(tx, [service.key])
    epochs = {row.seq: row for row in terms[service.key]}
    revisions = {each.revision: each for each in declared[service.key]}
    repairs = await select_repairing(tx, service, most=None)
    repairing = merged(TimeSpan(each.from_, each.to) for each in repairs)
    sealed = service.sealed_through or Instant(0)
    return [
        SeriesPoint(
            start=start,
            epoch_uid=epochs[epoch].uid,
            revision_uid=revisions[epochs[epoch].revision].uid,
            provisional=start + unit > sealed
            or any(each.from_ < start + unit and each.until > start for each in repairing),
            minutes=each.minutes,
            durations=each.durations,
        )
        for start, epoch, each in buckets
    ]
