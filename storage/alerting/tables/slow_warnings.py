"""Slow warnings of monitors. The lock of the monitor's state covers them."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

import msgspec

from ...core.instant import Instant
from ...core.key import MonitorKey, key_arrays
from ...engine.pools import Tx
from ..rows import WatchedMonitor
from ..rules.slow_warning import MeasuredCheck, SlowState

# Results that a pass reads of a monitor, newest first. It passes more often than they arrive.
RESULTS_MOST: Final = 40

_WATCHED: Final = """
select m.org, m.id, m.slow_above_ms, m.slow_runs, m.interval_seconds, w.seen_at, w.since_at
from monitors m left join slow_warnings w on w.org = m.org and w.monitor = m.id
where (m.org, m.id) > (%(org)s, %(monitor)s) and m.slow_above_ms > 0
  and m.type not in ('push', 'composite')
order by m.org, m.id limit %(most)s
"""
_UNWATCHED: Final = """
select m.org, m.id, m.slow_above_ms, m.slow_runs, m.interval_seconds, w.seen_at, w.since_at
from slow_warnings w join monitors m on m.org = w.org and m.id = w.monitor
where (m.org, m.id) > (%(org)s, %(monitor)s) and m.slow_above_ms = 0
order by m.org, m.id limit %(most)s
"""
_RESULTS: Final = """
select k.org, k.monitor, h.ts, h.latency_ms, h.up
from unnest(%(orgs)s::int[], %(monitors)s::int[], %(after)s::bigint[]) as k(org, monitor, after)
  cross join lateral (
    select b.ts, b.latency_ms, b.up from heartbeats b
    where b.org = k.org and b.monitor = k.monitor and b.ts > at(k.after)
      and b.ts <= at(%(now)s)
    order by b.ts desc limit %(most)s) h
order by k.org, k.monitor, h.ts
"""
_STORED: Final = """
select m.slow_above_ms, w.seen_at, w.since_at, w.thread
from monitors m left join slow_warnings w on w.org = m.org and w.monitor = m.id
where m.org = %(org)s and m.id = %(monitor)s
"""
_PUT: Final = """
insert into slow_warnings (org, monitor, seen_at, since_at, thread)
values (%(org)s, %(monitor)s, at(%(seen)s), at(%(since)s), %(thread)s)
on conflict (org, monitor) do update set seen_at = excluded.seen_at,
  since_at = excluded.since_at, thread = excluded.thread
"""
_DROP: Final = "delete from slow_warnings where org = %(org)s and monitor = %(monitor)s"


class StoredWarning(msgspec.Struct, frozen=True):
    above_ms: int
    seen: Instant | None
    since: Instant | None
    thread: UUID | None


async def select_watched(tx: Tx, after: MonitorKey, most: int) -> list[WatchedMonitor]:
    org, monitor = after
    return await tx.structs(WatchedMonitor, _WATCHED, org=org, monitor=monitor, most=most)


async def select_unwatched(tx: Tx, after: MonitorKey, most: int) -> list[WatchedMonitor]:
    """Returns monitors whose threshold was removed since their last warning."""
    org, monitor = after
    return await tx.structs(WatchedMonitor, _UNWATCHED, org=org, monitor=monitor, most=most)


async def select_measured(
    tx: Tx, after: dict[MonitorKey, Instant], now: Instant
) -> dict[MonitorKey, list[MeasuredCheck]]:
    """Returns the newest results of each monitor after an instant, in the order of time.

    Those later than `now` are left out: the clock was set back since they were recorded.
    """
    keys: Sequence[MonitorKey] = sorted(after)
    found: dict[MonitorKey, list[MeasuredCheck]] = {}
    rows = await tx.rows(
        _RESULTS,
        **key_arrays(keys, "monitors"),
        after=[after[key] for key in keys],
        now=now,
        most=RESULTS_MOST,
    )
    for org, monitor, ts, latency_ms, up in rows:
        measured = MeasuredCheck(ts, latency_ms if up else None)
        found.setdefault(MonitorKey((org, monitor)), []).append(measured)
    return found


async def select_stored(tx: Tx, key: MonitorKey) -> StoredWarning | None:
    return await tx.one(StoredWarning, _STORED, org=key[0], monitor=key[1])


async def put_warning(tx: Tx, key: MonitorKey, state: SlowState, thread: UUID) -> None:
    await tx.execute(
        _PUT, org=key[0], monitor=key[1], seen=state.seen, since=state.since, thread=thread
    )


async def drop_warning(tx: Tx, key: MonitorKey) -> None:
    await tx.execute(_DROP, org=key[0], monitor=key[1])
