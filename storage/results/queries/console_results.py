"""Results of monitors in even slots, with schedule terms and maintenance."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from ...core.instant import DAY, Instant
from ...core.key import MonitorKey
from ...core.time_span import TimeSpan
from ...engine.pools import Tx
from ...scheduling.queries import shards
from ...scheduling.rules.run_schedule import ScheduleTerm
from ...scheduling.tables import shards as schedules
from ..tables.latency_days import count_failed_pieces, select_counted_days, select_failures
from .latency import DECODED_MOST, count_packed, spans_between

# Upper limit of freshness: three times the longest interval, plus a day of grace.
LONGEST_HOLD_US = 4 * DAY

_SLOTS = """
select k.org, k.monitor,
  date_bin(%(step_us)s * interval '1 microsecond', h.ts, at(%(from_at)s)),
  count(*) filter (where h.up), count(*) filter (where not h.up), max(h.ts),
  (array_agg(h.up order by h.ts desc))[1]
from unnest(%(orgs)s::int[], %(monitors)s::int[]) as k(org, monitor)
  cross join lateral heartbeats_in(k.org, k.monitor, at(%(from_at)s), at(%(to_at)s)) h
group by 1, 2, 3 order by 1, 2, 3
"""
_BEFORE = """
select k.org, k.monitor, b.ts, b.up
from unnest(%(orgs)s::int[], %(monitors)s::int[]) as k(org, monitor)
cross join lateral newest_heartbeat(k.org, k.monitor, at(%(from_at)s)) b
where b.ts >= at(%(since)s)
"""
_LATENCY = """
select date_bin(%(step_us)s * interval '1 microsecond', ts, at(%(from_at)s)),
  count(*) filter (where up), count(*) filter (where not up),
  percentile_disc(0.5) within group (order by latency_ms) filter (where up),
  percentile_disc(0.95) within group (order by latency_ms) filter (where up)
from heartbeats_in(%(org)s::int, %(monitor)s::int, at(%(from_at)s), at(%(to_at)s))
group by 1 order by 1
"""
_LATENCY_OF_DAYS = """
select date_trunc('day', h.ts, 'UTC'),
  count(*) filter (where up), count(*) filter (where not up),
  percentile_disc(0.5) within group (order by latency_ms) filter (where up),
  percentile_disc(0.95) within group (order by latency_ms) filter (where up)
from unnest(%(sinces)s::bigint[], %(untils)s::bigint[]) as k(since, until)
  cross join lateral heartbeats_in(%(org)s::int, %(monitor)s::int, at(k.since), at(k.until)) h
group by 1
"""


class ResultSlot(msgspec.Struct, frozen=True):
    """Results of one slot. A slot without results has no row."""

    org: int
    monitor: int
    start: Instant
    up: int
    failed: int
    last_at: Instant
    last_up: bool


class LatencyBin(msgspec.Struct, frozen=True):
    """Results of one step. The percentiles cover good results, None without any."""

    start: Instant
    good: int
    bad: int
    p50_ms: int | None
    p95_ms: int | None


@dataclass(frozen=True, slots=True)
class ResultTimeline:
    """Results of one monitor in a range. `before` is the newest earlier result."""

    taken: Sequence[ResultSlot] = ()
    before: tuple[Instant, bool] | None = None
    terms: Sequence[ScheduleTerm] = ()
    maintenance: Sequence[TimeSpan] = field(default=())


async def select_courses(
    tx: Tx, keys: Sequence[MonitorKey], from_at: Instant, to_at: Instant, step_us: int
) -> dict[MonitorKey, ResultTimeline]:
    given = {"orgs": [k[0] for k in keys], "monitors": [k[1] for k in keys], "from_at": from_at}
    taken: dict[MonitorKey, list[ResultSlot]] = {}
    for row in await tx.structs(ResultSlot, _SLOTS, to_at=to_at, step_us=step_us, **given):
        taken.setdefault(MonitorKey((row.org, row.monitor)), []).append(row)
    since = Instant(from_at - LONGEST_HOLD_US)
    before = {(o, m): (ts, up) for o, m, ts, up in await tx.rows(_BEFORE, since=since, **given)}
    terms = await schedules.select_terms_of(tx, keys)
    spans = await select_maintenance(tx, keys, since)
    return {
        key: ResultTimeline(
            taken.get(key, ()), before.get(key), terms.get(key, ()), spans.get(key, ())
        )
        for key in keys
    }


async def select_maintenance(
    tx: Tx, keys: Iterable[MonitorKey], after: Instant
) -> Mapping[MonitorKey, Sequence[TimeSpan]]:
    """Returns the maintenance of the monitors that ends after an instant."""
    pairs = list(keys)
    found = await shards.select_maintenances(tx, after, monitors=[key[1] for key in pairs])
    return {key: found[key[1]] for key in pairs if key[1] in found}


async def select_latency_plot(
    tx: Tx, key: MonitorKey, from_at: Instant, to_at: Instant, step_us: int
) -> list[LatencyBin] | None:
    """Returns bins as `select_latency_bins`, None if more than DECODED_MOST results are decoded.

    Steps of a day in UTC come from counted days. Only other days are decoded.
    """
    span = TimeSpan(from_at, to_at)
    if step_us == DAY and from_at % DAY == 0:
        return await _select_days(tx, key, span)
    if await count_packed(tx, key, [span]) > DECODED_MOST:
        return None
    return await select_latency_bins(tx, key, from_at, to_at, step_us)


async def select_latency_bins(
    tx: Tx, key: MonitorKey, from_at: Instant, to_at: Instant, step_us: int
) -> list[LatencyBin]:
    """Returns bins by step from `from_at`, of a short range. A step without results has no row."""
    return await tx.structs(
        LatencyBin,
        _LATENCY,
        org=key[0],
        monitor=key[1],
        from_at=from_at,
        to_at=to_at,
        step_us=step_us,
    )


async def _select_days(tx: Tx, key: MonitorKey, span: TimeSpan) -> list[LatencyBin] | None:
    counted = await select_counted_days(tx, key, span)
    rest = spans_between(span, [day.start for day in counted])
    unknown = [day.start for day in counted if day.bad is None]
    decoded = await count_packed(tx, key, rest)
    if unknown:
        decoded += await count_failed_pieces(tx, key, unknown)
    if decoded > DECODED_MOST:
        return None
    failures = await select_failures(tx, key, unknown) if unknown else {}
    found = await tx.structs(
        LatencyBin,
        _LATENCY_OF_DAYS,
        org=key[0],
        monitor=key[1],
        sinces=[one.from_ for one in rest],
        untils=[one.until for one in rest],
    )
    for day in counted:
        bad = failures[day.start] if day.bad is None else day.bad
        found.append(LatencyBin(day.start, day.good, bad, day.p50_ms, day.p95_ms))
    return sorted(found, key=lambda item: item.start)
