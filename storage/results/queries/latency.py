"""Latency of good results by step and of a whole range, exact or from counted days."""

from collections.abc import Sequence
from typing import Final

import msgspec

from ...core.instant import DAY, EARLIEST, Instant
from ...core.key import MonitorKey
from ...core.time_span import TimeSpan
from ...engine.pools import Tx
from ..rules.latency_sketch import BUCKET_SQL, PERCENTILES, RELATIVE_ERROR, SHIFT_SQL, LatencySketch
from ..rules.packed_days import WEEK_DAYS
from ..tables.latency_days import Counted, select_latency_days

# Packed results that are decoded for exact figures, in about 30 ms.
EXACT_MOST: Final = 20_000
# Packed results of one answer without counted days, which take about a second.
DECODED_MOST: Final = 600_000
_COLUMNS: Final = ", ".join(
    f"percentile_disc({fraction}) within group (order by latency_ms)::float8"
    for fraction in PERCENTILES
)

_EXACT: Final = f"""
select start, count(*),
  {_COLUMNS}
from (
  select date_bin(%(step_us)s * interval '1 microsecond', ts, timestamptz 'epoch') as start,
    latency_ms
  from heartbeats_in(%(org)s::int, %(monitor)s::int, at(%(from_at)s), at(%(to_at)s))
  where up) h
group by grouping sets ((start), ()) having count(*) > 0 order by 1
"""
_SPANS: Final = "unnest(%(sinces)s::bigint[], %(untils)s::bigint[]) as k(since, until)"
_REST: Final = f"""
with r as materialized (
  select date_trunc('day', h.ts, 'UTC') as day, h.latency_ms
  from {_SPANS}
    cross join lateral heartbeats_in(%(org)s::int, %(monitor)s::int, at(k.since), at(k.until)) h
  where h.up)
select day, count(*), {_COLUMNS}, null::int from r group by day
union all
select null, count(*), null, null, null, {BUCKET_SQL}
from r cross join lateral (select {SHIFT_SQL} as shift) s group by 6
"""
_PACKED_COUNT: Final = f"""
select coalesce(sum(p.results), 0)::bigint
from {_SPANS} join packed_heartbeats p on p.until_at >= at(k.since)
  and p.from_at > at(k.since) - interval '{WEEK_DAYS} days' and p.from_at < at(k.until)
where p.org = %(org)s and p.monitor = %(monitor)s
"""


class LatencyRow(msgspec.Struct, frozen=True):
    """Good results from an instant on. None is the whole range."""

    start: Instant | None
    count: int
    p50_ms: float
    p95_ms: float
    p99_ms: float


class LatencyFigures(msgspec.Struct, frozen=True):
    """A step without good results has no point. `total` is None without any.

    The points are exact. `relative_error` is the largest error of a percentile of `total`, as a
    fraction of it.
    """

    points: Sequence[LatencyRow]
    total: LatencyRow | None
    relative_error: float


async def select_latency(
    tx: Tx, key: MonitorKey, span: TimeSpan, step_us: int
) -> LatencyFigures | None:
    """Returns the latency by step and of the span, None if too many results had to be decoded.

    Steps of a day use counted days if the exact figures need more than EXACT_MOST packed results.
    """
    packed = await count_packed(tx, key, [span])
    if packed > EXACT_MOST and step_us == DAY:
        return await _select_counted(tx, key, span)
    if packed > DECODED_MOST:
        return None
    those = {"org": key[0], "monitor": key[1], "from_at": span.from_, "to_at": span.until}
    rows = await tx.structs(LatencyRow, _EXACT, step_us=step_us, **those)
    points = [row for row in rows if row.start is not None]
    return LatencyFigures(points, next((r for r in rows if r.start is None), None), 0)


async def _select_counted(tx: Tx, key: MonitorKey, span: TimeSpan) -> LatencyFigures | None:
    whole = TimeSpan(Instant(-(-span.from_ // DAY) * DAY), Instant(span.until // DAY * DAY))
    counted = await select_latency_days(tx, key, whole)
    rest = spans_between(span, sorted(one.day for one in counted if one.day is not None))
    if await count_packed(tx, key, rest) > DECODED_MOST:
        return None
    found = counted + await tx.structs(Counted, _REST, **_of(key, rest))
    total = LatencySketch()
    total.add((one.bucket, one.count) for one in found if one.bucket is not None)
    points = [
        LatencyRow(one.day, one.count, one.p50_ms, one.p95_ms, one.p99_ms)
        for one in found
        if one.p50_ms is not None and one.p95_ms is not None and one.p99_ms is not None
    ]
    points.sort(key=lambda point: point.start or EARLIEST)
    if not points:
        return LatencyFigures([], None, RELATIVE_ERROR)
    whole_range = LatencyRow(None, total.count, *total.percentiles(PERCENTILES))
    return LatencyFigures(points, whole_range, RELATIVE_ERROR)


async def count_packed(tx: Tx, key: MonitorKey, spans: Sequence[TimeSpan]) -> int:
    """Returns the number of packed results that a read of the spans decodes."""
    found: int = await tx.value(_PACKED_COUNT, **_of(key, spans))
    return found


def spans_between(span: TimeSpan, days: Sequence[Instant]) -> list[TimeSpan]:
    """Returns the parts of a span outside of the days, which are whole and in order."""
    found, begin = [], span.from_
    for day in days:
        if begin < day:
            found.append(TimeSpan(begin, day))
        begin = Instant(day + DAY)
    if begin < span.until:
        found.append(TimeSpan(begin, span.until))
    return found


def _of(key: MonitorKey, spans: Sequence[TimeSpan]) -> dict[str, object]:
    return {
        "org": key[0],
        "monitor": key[1],
        "sinces": [span.from_ for span in spans],
        "untils": [span.until for span in spans],
    }
