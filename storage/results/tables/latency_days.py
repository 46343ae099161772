"""Latencies of packed days, counted by bucket (`rules/latency_sketch.py`)."""

from collections.abc import Collection, Sequence
from typing import Final

import msgspec

from ...core.instant import Instant
from ...core.key import MonitorKey, key_arrays
from ...core.time_span import TimeSpan
from ...engine.pools import Tx
from ..rules.latency_sketch import BUCKET_SQL, SHIFT_SQL
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
insert into latency_days (org, monitor, day, buckets, counts)
select k.org, k.monitor, at(%(from_at)s), b.buckets, b.counts
from unnest(%(orgs)s::int[], %(monitors)s::int[]) as k(org, monitor)
  cross join lateral (
    select sum(n) as results,
      coalesce(array_agg(bucket order by bucket) filter (where bucket >= 0), '{{}}') as buckets,
      coalesce(array_agg(n::int order by bucket) filter (where bucket >= 0), '{{}}') as counts
    from (
      select case when r.up then {BUCKET_SQL} else -1 end as bucket, count(*) as n
      from (select * from {rows} offset 0) r, lateral (select {SHIFT_SQL} as shift) s
      group by 1) counted) b
where b.results >= {COUNTED_LEAST}
on conflict (org, monitor, day) do update
  set buckets = excluded.buckets, counts = excluded.counts
"""


_PUT_RAW: Final = _put(_RAW)
_PUT_PACKED: Final = _put(_PACKED)
# Days that were packed by an earlier version.
_MISSING: Final = f"""
select p.org, p.monitor, date_trunc('day', p.from_at, 'UTC')
from unnest(%(orgs)s::int[], %(monitors)s::int[]) as k(org, monitor)
  join packed_heartbeats p on p.org = k.org and p.monitor = k.monitor
    and p.from_at >= at(%(from_at)s) and p.from_at < at(%(until)s)
where not exists (select from latency_days d where d.org = p.org and d.monitor = p.monitor
  and d.day = date_trunc('day', p.from_at, 'UTC'))
group by 1, 2, 3 having sum(p.results) >= {COUNTED_LEAST} order by 3, 1, 2
"""
_IN: Final = """
select day, array_to_json(buckets)::text, array_to_json(counts)::text from latency_days
where org = %(org)s and monitor = %(monitor)s
  and day >= at(%(from_at)s) and day < at(%(until)s)
  and day < (select packed_through from packing)
order by day
"""
_DELETE_OLD: Final = "delete from latency_days where day < at(%(before)s)"
_DELETE_OF: Final = """
delete from latency_days where (org, monitor) in (
  select * from unnest(%(orgs)s::int[], %(monitors)s::int[]))
"""
_decode: Final = msgspec.json.Decoder(list[int]).decode


class LatencyDay(msgspec.Struct, frozen=True):
    """`buckets` and `counts` are arrays of JSON with as many items."""

    day: Instant
    buckets: str
    counts: str

    def pairs(self) -> list[tuple[int, int]]:
        """Returns (bucket, number of results) pairs."""
        return list(zip(_decode(self.buckets), _decode(self.counts), strict=True))


async def put_days_from_rows(tx: Tx, keys: Sequence[MonitorKey], day: TimeSpan) -> None:
    """Counts a day from its rows in the tables, while it is packed."""
    those = {**key_arrays(keys, "monitors"), "from_at": day.from_, "until": day.until}
    await tx.execute(_PUT_RAW, **those)


async def put_days_from_pieces(tx: Tx, keys: Sequence[MonitorKey], day: TimeSpan) -> None:
    """Counts a packed day again. The caller has locked the pieces."""
    those = {**key_arrays(keys, "monitors"), "from_at": day.from_, "until": day.until}
    await tx.execute(_PUT_PACKED, **those)


async def select_missing(
    tx: Tx, keys: Sequence[MonitorKey], span: TimeSpan
) -> list[tuple[MonitorKey, Instant]]:
    """Returns (monitor, start of a day) of pieces by day whose days are not counted."""
    those = {**key_arrays(keys, "monitors"), "from_at": span.from_, "until": span.until}
    return [
        (MonitorKey((org, monitor)), Instant(day))
        for org, monitor, day in await tx.rows(_MISSING, **those)
    ]


async def select_latency_days(tx: Tx, key: MonitorKey, span: TimeSpan) -> list[LatencyDay]:
    """Returns the counted days that begin in the span."""
    those = {"org": key[0], "monitor": key[1], "from_at": span.from_, "until": span.until}
    return await tx.structs(LatencyDay, _IN, **those)


async def delete_old_days(tx: Tx, before: Instant) -> None:
    await tx.execute(_DELETE_OLD, before=before)


async def delete_days_of(tx: Tx, keys: Collection[MonitorKey]) -> None:
    await tx.execute(_DELETE_OF, **key_arrays(keys, "monitors"))
