"""Rolled-up time of monitors: hours from results, days from hours; and due repairs."""

from collections.abc import Sequence

import msgspec

from ..core.instant import Instant
from ..core.key import MonitorKey, key_arrays
from ..engine.pools import LockRank, Tx
from .rows import DueRepair

_RESULTS = """
select org, monitor, ts, up, msg from heartbeats
where (org, monitor) in (select * from unnest(%(orgs)s::int[], %(monitors)s::int[]))
  and ts >= at(%(from_at)s) and ts < at(%(to_at)s)
  and ts >= (select packed_through from packing)
union all
select k.org, k.monitor, p.ts, p.up, p.msg
from unnest(%(orgs)s::int[], %(monitors)s::int[]) as k(org, monitor)
  cross join lateral packed_heartbeats_in(k.org, k.monitor, at(%(from_at)s), at(%(to_at)s)) p
order by org, monitor, ts
"""

# The last result before a range, because its validity may extend into the range.
_BEFORE = """
select k.org, k.monitor, h.ts, h.up, h.msg
from unnest(%(orgs)s::int[], %(monitors)s::int[]) as k(org, monitor)
cross join lateral newest_heartbeat(k.org, k.monitor, at(%(from_at)s)) h
where h.ts >= at(%(since)s)
"""

_PUT_HOURS = """
insert into monitor_hours (org, monitor, hour, good_us, bad_us, unknown_us, excluded_us, up, total)
select i.org, i.monitor, at(i.start), i.good_us, i.bad_us, i.unknown_us, i.excluded_us, i.up,
  i.total
from json_to_recordset(%(items)s::json) as i(org int, monitor int, start bigint, good_us bigint,
  bad_us bigint, unknown_us bigint, excluded_us bigint, up int, total int)
order by i.org, i.monitor, i.start
on conflict (org, monitor, hour) do update set good_us = excluded.good_us,
  bad_us = excluded.bad_us, unknown_us = excluded.unknown_us,
  excluded_us = excluded.excluded_us, up = excluded.up, total = excluded.total
"""

# A day is the sum of its hours at the time of writing.
_PUT_DAYS = """
insert into monitor_days (org, monitor, day, good_us, bad_us, unknown_us, excluded_us, up, total)
select org, monitor, at(%(day)s), sum(good_us), sum(bad_us), sum(unknown_us), sum(excluded_us),
  sum(up), sum(total)
from monitor_hours
where (org, monitor) in (select * from unnest(%(orgs)s::int[], %(monitors)s::int[]))
  and hour >= at(%(day)s) and hour < at(%(day)s) + interval '24 hours'
group by org, monitor
on conflict (org, monitor, day) do update set good_us = excluded.good_us,
  bad_us = excluded.bad_us, unknown_us = excluded.unknown_us,
  excluded_us = excluded.excluded_us, up = excluded.up, total = excluded.total
"""

_MOVE = """
update shards set rolled_up_through = at(%(to)s)
where id = %(shard)s and rolled_up_through = at(%(was)s)
"""

_MONITORS_OF_SHARD = "select org, id from monitors where shard = %(shard)s"
# The lock lasts from before the results are read until the commit. Of two concurrent transactions,
# the second then reads the results that the first could not see.
_LOCK_TYPES = """
select m.org, m.id, m.type from monitors m
  join unnest(%(orgs)s::int[], %(monitors)s::int[]) as k(org, monitor)
    on k.org = m.org and k.monitor = m.id
order by m.org, m.id for no key update of m
"""
# Hours are written in order, so the last one is the end of the rolled-up time.
_FIGURED_OF = """
select k.org, k.monitor, s.rolled_up_through,
  (select max(h.hour) + interval '1 hour' from monitor_hours h
  where h.org = k.org and h.monitor = k.monitor and h.hour >= at(%(since)s))
from unnest(%(orgs)s::int[], %(monitors)s::int[]) as k(org, monitor)
  join monitors m on m.org = k.org and m.id = k.monitor
  join shards s on s.id = m.shard
"""

_LEASE_REPAIRS = """
select org, id, shard, monitor, from_at, to_at, attempts from repairs
where due_at <= at(%(now)s) and shard = any(%(shards)s)
order by due_at limit %(most)s for update skip locked
"""
_DELETE_REPAIR = "delete from repairs where org = %(org)s and id = %(id)s"
# Repairs that another process has locked are skipped.
_DELETE_COVERED = """
delete from repairs where (org, id) in (
  select r.org, r.id from repairs r
  where r.org = %(org)s and r.monitor = %(monitor)s
    and r.from_at >= at(%(from_at)s) and r.to_at <= at(%(to_at)s)
  order by r.id for update skip locked)
"""
_PUT_OFF = """
update repairs set attempts = attempts + 1, last_error = %(error)s,
  due_at = at(%(now)s) + least(interval '1 hour', interval '5 seconds' * power(2, attempts))
where org = %(org)s and id = %(id)s
"""


class RollupBucket(msgspec.Struct, frozen=True):
    org: int
    monitor: int
    start: Instant
    good_us: int
    bad_us: int
    unknown_us: int
    excluded_us: int
    up: int
    total: int


async def select_results(
    tx: Tx, keys: Sequence[MonitorKey], from_at: Instant, to_at: Instant, since: Instant
) -> dict[MonitorKey, list[tuple[Instant, bool, str | None]]]:
    """Returns (instant, up, message) of each monitor in [from_at, to_at).

    The last result before the range comes first, if one exists since `since`.
    """
    pairs = key_arrays(keys, "monitors")
    found: dict[MonitorKey, list[tuple[Instant, bool, str | None]]] = {key: [] for key in keys}
    for org, monitor, ts, up, msg in await tx.rows(_BEFORE, from_at=from_at, since=since, **pairs):
        found[MonitorKey((org, monitor))].append((ts, up, msg))
    for org, monitor, ts, up, msg in await tx.rows(_RESULTS, from_at=from_at, to_at=to_at, **pairs):
        found[MonitorKey((org, monitor))].append((ts, up, msg))
    return found


async def put_hours(tx: Tx, hours: Sequence[RollupBucket]) -> None:
    if hours:
        await tx.execute(_PUT_HOURS, items=msgspec.json.encode(hours).decode())


async def put_days(tx: Tx, keys: Sequence[MonitorKey], day: Instant) -> None:
    await tx.execute(_PUT_DAYS, day=day, **key_arrays(keys, "monitors"))


async def advance_rolled_up(tx: Tx, shard: int, was: Instant, to: Instant) -> bool:
    """Advances a shard's rolled-up instant. Returns False if another process was first."""
    tx.lock_rank(LockRank.SHARD, "figured")
    return bool(await tx.execute(_MOVE, shard=shard, was=was, to=to))


async def select_monitors_of_shard(tx: Tx, shard: int) -> list[MonitorKey]:
    """Returns the monitors of a shard."""
    return [
        MonitorKey((org, monitor))
        for org, monitor in await tx.rows(_MONITORS_OF_SHARD, shard=shard)
    ]


async def lock_types(tx: Tx, keys: Sequence[MonitorKey]) -> dict[MonitorKey, str]:
    """Locks monitors against other writers of their figures, and returns their types.

    Deleted monitors are omitted.
    """
    tx.lock_rank(LockRank.MONITOR, "figures of monitors")
    rows = await tx.rows(_LOCK_TYPES, **key_arrays(keys, "monitors"))
    return {MonitorKey((org, monitor)): kind for org, monitor, kind in rows}


async def select_figured_of(
    tx: Tx, keys: Sequence[MonitorKey], since: Instant
) -> dict[MonitorKey, Instant]:
    """Returns the instant up to which the hours of each monitor are rolled up.

    It is the later one of the shard's instant and the end of the monitor's own hours since `since`.
    """
    rows = await tx.rows(_FIGURED_OF, **key_arrays(keys, "monitors"), since=since)
    return {
        MonitorKey((org, monitor)): max(shards, own or shards) for org, monitor, shards, own in rows
    }


async def lease_repairs(tx: Tx, shards: Sequence[int], most: int) -> list[DueRepair]:
    return await tx.structs(DueRepair, _LEASE_REPAIRS, shards=list(shards), most=most, now=tx.now)


async def delete_repair(tx: Tx, org: int, repair: int) -> None:
    await tx.execute(_DELETE_REPAIR, org=org, id=repair)


async def delete_covered_repairs(tx: Tx, key: MonitorKey, from_at: Instant, to_at: Instant) -> int:
    """Deletes the repairs of a monitor within a range that is recomputed afterwards.

    Their causes are committed, so that the recomputation reads them. Returns the number of repairs.
    """
    return await tx.execute(
        _DELETE_COVERED, org=key[0], monitor=key[1], from_at=from_at, to_at=to_at
    )


async def postpone_repair(tx: Tx, org: int, repair: int, error: str) -> None:
    await tx.execute(_PUT_OFF, org=org, id=repair, error=error, now=tx.now)
