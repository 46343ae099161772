"""Schedule edits: the monitors that changed, and the lock between edit and reservation.

An edit takes the lock of a shard in shared mode, as the last lock of its transaction. It then reads
how far the shard is reserved, begins its terms there, and logs the monitors. A reservation takes
the lock in exclusive mode. Therefore a reservation sees every edit that was committed before it,
and every later edit begins its terms at the end of that reservation. PostgreSQL grants the lock in
the order of the requests: neither side can starve the other.
"""

from collections.abc import Collection, Mapping
from typing import Final

import msgspec

from ...core.instant import Instant
from ...core.key import MonitorKey
from ...engine.pools import LockRank, Tx

# First key of the advisory locks. The second key is the id of the shard.
LOCK_CLASS: Final = 1_279_610_181

_LOCK_SHARED = f"""
select pg_advisory_xact_lock_shared({LOCK_CLASS}, s.id)
from (select id from unnest(%(shards)s::int[]) as k(id) order by id) s
"""
_LOCK_ALONE = f"select pg_advisory_xact_lock({LOCK_CLASS}, %(shard)s::int)"

_INSERT = """
insert into schedule_edits (shard, at, orgs, monitors)
select i.shard, at(%(now)s), i.orgs, i.monitors
from json_to_recordset(%(items)s::json) as i(shard int, orgs int[], monitors int[])
order by i.shard
"""

# In every shard: a monitor can be created in any of them, or move there, at the same time.
_INSERT_EVERYWHERE = """
insert into schedule_edits (shard, at, orgs, monitors, org, project)
select s.id, at(%(now)s), %(orgs)s::int[], %(monitors)s::int[], %(org)s, %(project)s
from shards s order by s.id
"""
_ALL_SHARDS = "select id from shards order by id"

_AFTER = """
select s.reserved_through, s.edits_deleted_through,
  (select coalesce(json_agg(json_build_array(e.seq, to_json(e.orgs), to_json(e.monitors),
      e.org, e.project) order by e.seq)::text, '[]')
    from schedule_edits e where e.shard = s.id and e.seq > %(seen)s)
from shards s where s.id = %(shard)s
"""

_NEWEST = """
select greatest(s.edits_deleted_through,
  (select max(e.seq) from schedule_edits e where e.shard = s.id))
from shards s where s.id = %(shard)s
"""

# One statement, so that no reader misses deleted rows that the mark does not cover.
_DELETE = """
with gone as (delete from schedule_edits where at < at(%(before)s) returning shard, seq),
newest as (select shard, max(seq) as seq from gone group by shard)
update shards s set edits_deleted_through = greatest(s.edits_deleted_through, n.seq)
from newest n where n.shard = s.id
"""


class ScheduleEdit(msgspec.Struct, frozen=True, array_like=True):
    """An edit of the monitors listed, or of all monitors of a project."""

    seq: int
    orgs: list[int]
    monitors: list[int]
    org: int | None
    project: int | None


class EditedShard(msgspec.Struct, frozen=True):
    """Reservation cursor of a shard and its edits after the given number."""

    reserved_through: Instant
    deleted_through: int
    edits: list[ScheduleEdit]


async def lock_edits(tx: Tx, shards: Collection[int]) -> None:
    """Delays reservations of the shards until this transaction ends."""
    tx.lock_rank(LockRank.SCHEDULE, "schedules that are edited")
    await tx.rows(_LOCK_SHARED, shards=sorted(shards))


async def lock_reservation(tx: Tx, shard: int) -> None:
    """Waits for the open edits of a shard, and delays later ones until this transaction ends."""
    tx.lock_rank(LockRank.SCHEDULE, "a schedule that is reserved")
    await tx.rows(_LOCK_ALONE, shard=shard)


async def insert_edits(tx: Tx, edited: Mapping[int, Collection[MonitorKey]]) -> None:
    """Logs the monitors that were edited, by shard. Requires `lock_edits`."""
    items = [
        {"shard": shard, "orgs": [org for org, _ in keys], "monitors": [key for _, key in keys]}
        for shard, keys in ((shard, sorted(keys)) for shard, keys in edited.items())
    ]
    if items:
        await tx.execute(_INSERT, items=msgspec.json.encode(items).decode(), now=tx.now)


async def edit_everywhere(
    tx: Tx, org: int, *, project: int | None = None, monitor: int | None = None
) -> None:
    """Locks and logs an edit of all monitors of a project, or of one monitor, in every shard."""
    shards = [shard for (shard,) in await tx.rows(_ALL_SHARDS)]
    await lock_edits(tx, shards)
    await tx.execute(
        _INSERT_EVERYWHERE,
        orgs=[] if monitor is None else [org],
        monitors=[] if monitor is None else [monitor],
        org=None if project is None else org,
        project=project,
        now=tx.now,
    )


async def select_edits_after(tx: Tx, shard: int, seen: int) -> EditedShard | None:
    """Returns the edits after `seen`, or None if the shard does not exist."""
    row = await tx.row(_AFTER, shard=shard, seen=seen)
    if row is None:
        return None
    reserved_through, deleted_through, edits = row
    return EditedShard(
        reserved_through, deleted_through, msgspec.json.decode(edits, type=list[ScheduleEdit])
    )


async def select_newest_edit(tx: Tx, shard: int) -> int:
    """Returns the number of the newest edit.

    After `lock_reservation`, every edit up to this number is committed.
    """
    newest: int = await tx.value(_NEWEST, shard=shard)
    return newest


async def delete_edits(tx: Tx, before: Instant) -> None:
    await tx.execute(_DELETE, before=before)
