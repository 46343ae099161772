"""Latencies of packed days: exact percentiles, and counts by bucket (`rules/latency_sketch.py`)."""

from collections.abc import Collection, Sequence
from typing import Final

import msgspec

from ...core.instant import Instant
from ...core.key import MonitorKey, key_arrays
from ...core.time_span import TimeSpan
from ...engine.pools import Tx
from ..rules.latency_sketch import BUCKET_SQL, PERCENTILES, SHIFT_SQL
from ..rules.packed_days import WEEK_DAYS

# Results of a day that is counted. A year of days with fewer results is decoded in 30 ms, and its
# counts would take as much space as its results.
COUNTED_LEAST: Final = 50

# The rows of the tables while a day is packed, and of pieces afterwards.
_RAW: Final = """
heartbeats v
where v.org = k.org and v.monitor = k.monitor
  and v.ts >= at(%(from_at)s) and v.ts < at(%(until)s)
"""
_PACKED: Final = f"""
restored_heartbeats v
where v.org = k.org and v.monitor = k.monitor
  and v.piece_from > at(%(from_at)s) - interval '{WEEK_DAYS} days' and v.piece_from < at(%(until)s)
  and v.piece_until >= at(%(from_at)s) and v.ts >= at(%(from_at)s) and v.ts < at(%(until)s)
"""


def _put(rows: str) -> str:
    """Returns the statement. A day whose results all failed gets a row without buckets."""
    return f"""
insert into latency_days (org, monitor, day, good, bad, p50_ms, p95_ms, p99_ms, buckets, counts)
select k.org, k.monitor, at(%(from_at)s), d.good, d.results - d.good, d.p[1], d.p[2], d.p[3],
  coalesce(b.buckets, '{{}}'), coalesce(b.counts, '{{}}')
from unnest(%(orgs)s::int[], %(monitors)s::int[]) as k(org, monitor)
  cross join lateral (
    select count(*) as results, count(*) filter (where r.up) as good,
      percentile_disc(array[{", ".join(map(str, PERCENTILES))}])
        within group (order by r.latency_ms) filter (where r.up) as p,
      array_agg(r.latency_ms) filter (where r.up) as latencies
    from (select * from {rows} offset 0) r) d
  cross join lateral (
    select array_agg(bucket order by bucket) as buckets, array_agg(n order by bucket) as counts
    from (
      select {BUCKET_SQL} as bucket, count(*) as n
      from unnest(d.latencies) as r(latency_ms), lateral (select {SHIFT_SQL} as shift) s
      group by 1) counted) b
where d.results >= {COUNTED_LEAST}
"""


_PUT_RAW: Final = _put(_RAW)
_PUT_PACKED: Final = _put(_PACKED)
# A trigger makes `bad` null in an updated row (migration 0043), so a row is replaced.
_DELETE_DAY: Final = """
delete from latency_days d
using unnest(%(orgs)s::int[], %(monitors)s::int[]) as k(org, monitor)
where d.org = k.org and d.monitor = k.monitor and d.day = at(%(from_at)s)
"""
# Days that an earlier version packed, and days that it counted without `bad`, with the results that
# are decoded to count them. A piece of a week is decoded for each of its days.
_MISSING: Final = f"""
with k as (
  select org, monitor from unnest(%(orgs)s::int[], %(monitors)s::int[]) as u(org, monitor))
select p.org, p.monitor, date_trunc('day', p.from_at, 'UTC') as day, sum(p.results)::bigint
from k join packed_heartbeats p on p.org = k.org and p.monitor = k.monitor
    and p.from_at >= at(%(from_at)s) and p.from_at < at(%(until)s)
where p.until_at < date_trunc('day', p.from_at, 'UTC') + interval '1 day'
  and not exists (select from latency_days d where d.org = p.org and d.monitor = p.monitor
    and d.day = date_trunc('day', p.from_at, 'UTC'))
group by 1, 2, 3 having sum(p.results) >= {COUNTED_LEAST}
union all
select d.org, d.monitor, d.day, sum(p.results)::bigint
from k join latency_days d on d.org = k.org and d.monitor = k.monitor
    and d.day >= at(%(from_at)s) and d.day < at(%(until)s) and d.bad is null
  join packed_heartbeats p on p.org = d.org and p.monitor = d.monitor
    and p.from_at >= at(%(from_at)s) and p.from_at < d.day + interval '1 day'
    and p.until_at >= d.day
group by 1, 2, 3
order by 1, 2, 3
"""
_IN: Final = """
with d as (
  select * from latency_days
  where org = %(org)s and monitor = %(monitor)s
    and day >= at(%(from_at)s) and day < at(%(until)s)
    and day < (select packed_through from packing))
select day, good, p50_ms, p95_ms, p99_ms, null::int from d
union all
select null, sum(u.count)::bigint, null, null, null, u.bucket
from d cross join lateral unnest(d.buckets, d.counts) as u(bucket, count) group by u.bucket
"""
_DAYS: Final = """
select day, good, bad, p50_ms, p95_ms from latency_days
where org = %(org)s and monitor = %(monitor)s and day >= at(%(from_at)s) and day < at(%(until)s)
  and day + interval '1 day' <= least(at(%(until)s), (select packed_through from packing))
order by day
"""
# A piece of a week is decoded once for each of its days.
_FAILED_PIECES: Final = f"""
select coalesce(sum(p.results), 0)::bigint
from unnest(%(days)s::bigint[]) as k(day) join packed_heartbeats p on p.until_at >= at(k.day)
  and p.from_at > at(k.day) - interval '{WEEK_DAYS} days'
  and p.from_at < at(k.day) + interval '1 day'
where p.org = %(org)s and p.monitor = %(monitor)s and p.state_up && array[false]
"""
_FAILURES: Final = f"""
select k.day, f.failures
from unnest(%(days)s::bigint[]) as k(day) cross join lateral (
  select count(*) as failures from restored_heartbeats h
  where h.org = %(org)s and h.monitor = %(monitor)s and h.piece_up && array[false]
    and h.piece_until >= at(k.day) and h.piece_from > at(k.day) - interval '{WEEK_DAYS} days'
    and h.piece_from < at(k.day) + interval '1 day'
    and h.ts >= at(k.day) and h.ts < at(k.day) + interval '1 day' and not h.up) f
"""
_DELETE_OLD: Final = """
delete from latency_days where ctid = any(array(
  select ctid from latency_days where day < at(%(before)s) limit %(most)s))
"""
_DELETE_OF: Final = """
delete from latency_days where (org, monitor) in (
  select * from unnest(%(orgs)s::int[], %(monitors)s::int[]))
"""


class Counted(msgspec.Struct, frozen=True):
    """The exact percentiles of a day, or the good results in a bucket of all days of a read.

    The percentiles are None for a bucket, and for a day without a good result.
    """

    day: Instant | None
    count: int
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    bucket: int | None


class CountedDay(msgspec.Struct, frozen=True):
    """Results of a packed day. The percentiles cover good results, None without any.

    `bad` is None if an earlier version counted the day: its failures are in the pieces.
    """

    start: Instant
    good: int
    bad: int | None
    p50_ms: int | None
    p95_ms: int | None


async def put_days_from_rows(tx: Tx, keys: Sequence[MonitorKey], day: TimeSpan) -> None:
    """Counts a day from its rows in the tables, while it is packed."""
    await _replace(tx, _PUT_RAW, keys, day)


async def put_days_from_pieces(tx: Tx, keys: Sequence[MonitorKey], day: TimeSpan) -> None:
    """Counts a packed day again. The caller has locked the pieces."""
    await _replace(tx, _PUT_PACKED, keys, day)


async def _replace(tx: Tx, statement: str, keys: Sequence[MonitorKey], day: TimeSpan) -> None:
    those = {**key_arrays(keys, "monitors"), "from_at": day.from_}
    await tx.execute(_DELETE_DAY, **those)
    await tx.execute(statement, until=day.until, **those)


async def select_missing(
    tx: Tx, keys: Sequence[MonitorKey], span: TimeSpan
) -> list[tuple[MonitorKey, Instant, int]]:
    """Returns (monitor, start of a day, results to decode) of days that must be counted.

    The span is a week. In the order of the monitors.
    """
    those = {**key_arrays(keys, "monitors"), "from_at": span.from_, "until": span.until}
    return [
        (MonitorKey((org, monitor)), Instant(day), results)
        for org, monitor, day, results in await tx.rows(_MISSING, **those)
    ]


async def select_latency_days(tx: Tx, key: MonitorKey, span: TimeSpan) -> list[Counted]:
    """Returns the counted days that begin in the span, and the buckets of all of them."""
    those = {"org": key[0], "monitor": key[1], "from_at": span.from_, "until": span.until}
    return await tx.structs(Counted, _IN, **those)


async def select_counted_days(tx: Tx, key: MonitorKey, span: TimeSpan) -> list[CountedDay]:
    """Returns the counted days within the span, in order."""
    those = {"org": key[0], "monitor": key[1], "from_at": span.from_, "until": span.until}
    return await tx.structs(CountedDay, _DAYS, **those)


async def count_failed_pieces(tx: Tx, key: MonitorKey, days: Sequence[Instant]) -> int:
    """Returns the number of results that `select_failures` decodes."""
    those = {"org": key[0], "monitor": key[1], "days": days}
    found: int = await tx.value(_FAILED_PIECES, **those)
    return found


async def select_failures(tx: Tx, key: MonitorKey, days: Sequence[Instant]) -> dict[Instant, int]:
    """Returns the failures of packed days, from their pieces."""
    those = {"org": key[0], "monitor": key[1], "days": days}
    return {Instant(day): failures for day, failures in await tx.rows(_FAILURES, **those)}


async def delete_old_days(tx: Tx, before: Instant, most: int) -> int:
    """Deletes up to `most` days that begin before an instant. Returns their number."""
    return await tx.execute(_DELETE_OLD, before=before, most=most)


async def delete_days_of(tx: Tx, keys: Collection[MonitorKey]) -> None:
    await tx.execute(_DELETE_OF, **key_arrays(keys, "monitors"))
