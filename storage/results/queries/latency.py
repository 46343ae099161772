"""Latency of good results by step and of a whole range, exact or from counted days."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

import msgspec

from ...core.instant import DAY, Instant
from ...core.key import MonitorKey
from ...core.time_span import TimeSpan
from ...engine.pools import Tx
from ..rules.latency_sketch import BUCKET_SQL, RELATIVE_ERROR, SHIFT_SQL, LatencySketch
from ..rules.packed_days import WEEK_DAYS
from ..tables.latency_days import select_latency_days

# Packed results that are decoded for exact figures, in about 30 ms.
EXACT_MOST: Final = 20_000
# Packed results of one answer without counted days, which take about a second.
DECODED_MOST: Final = 600_000
_PERCENTILES: Final = (0.5, 0.95, 0.99)
_COLUMNS: Final = ", ".join(
    f"percentile_disc({fraction}) within group (order by latency_ms)::float8"
    for fraction in _PERCENTILES
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
_COUNTED: Final = f"""
select date_trunc('day', r.ts, 'UTC'), {BUCKET_SQL}, count(*)
from {_SPANS}
  cross join lateral (
    select * from heartbeats_in(%(org)s::int, %(monitor)s::int, at(k.since), at(k.until))
    where up) r
  cross join lateral (select {SHIFT_SQL} as shift) s
group by 1, 2
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

    `relative_error` is the largest error of a percentile, as a fraction of it.
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
    packed = await _count_packed(tx, key, [span])
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
    rest = spans_between(span, [day.day for day in counted])
    if await _count_packed(tx, key, rest) > DECODED_MOST:
        return None
    days = defaultdict[Instant, LatencySketch](LatencySketch)
    for day in counted:
        days[day.day].add(day.pairs())
    for start, bucket, count in await tx.rows(_COUNTED, **_of(key, rest)):
        days[Instant(start)].add([(bucket, count)])
    total = LatencySketch()
    for sketch in days.values():
        total.add(sketch.counts.items())
    points = [_row(start, days[start]) for start in sorted(days) if days[start].count]
    return LatencyFigures(points, _row(None, total) if points else None, RELATIVE_ERROR)


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


def _row(start: Instant | None, sketch: LatencySketch) -> LatencyRow:
    return LatencyRow(start, sketch.count, *sketch.percentiles(_PERCENTILES))


async def _count_packed(tx: Tx, key: MonitorKey, spans: Sequence[TimeSpan]) -> int:
    """Returns the number of packed results that a read of the spans decodes."""
    found: int = await tx.value(_PACKED_COUNT, **_of(key, spans))
    return found


def _of(key: MonitorKey, spans: Sequence[TimeSpan]) -> dict[str, object]:
    return {
        "org": key[0],
        "monitor": key[1],
        "sinces": [span.from_ for span in spans],
        "untils": [span.until for span in spans],
    }
