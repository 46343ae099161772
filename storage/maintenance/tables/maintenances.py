"""Maintenance of monitors and projects, and previews of its effect.

An archived maintenance has no effect; a cut-short one has effect until the cut.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from ...core.instant import Instant
from ...engine.pools import LockRank, Tx
from ..rows import MaintenanceRow

_COLUMNS = """
x.org, x.id, x.uid, x.project, p.uid, x.monitor, m.uid, x.starts_at, x.ends_at, x.reason,
x.created_at, x.archived_at, x.cancel_effective_at, z.uid, x.public_title
"""
_FROM = """
from maintenances x join projects p on p.org = x.org and p.id = x.project
  left join monitors m on m.org = x.org and m.id = x.monitor
  left join maintenance_series z on z.org = x.org and z.id = x.series
"""
_BY_UID = f"select {_COLUMNS} {_FROM} where x.uid = %(uid)s"
# The lock ensures that of two concurrent ends, the second finds the maintenance over.
_LOCK = f"{_BY_UID} for no key update of x"
_COUNT = """
select count(*) from maintenances
where org = %(org)s and project = %(project)s and archived_at is null
  and least(ends_at, cancel_effective_at) > at(%(now)s) and series is null
"""
_INSERT = """
insert into maintenances (org, uid, project, monitor, starts_at, ends_at, reason, series,
  public_title, created_at)
values (%(org)s, %(uid)s, %(project)s, %(monitor)s, at(%(starts)s), at(%(ends)s), %(reason)s,
  %(series)s, %(public_title)s, at(%(now)s))
"""
_CUT_SHORT = """
update maintenances set cancel_effective_at = at(%(now)s) where org = %(org)s and id = %(id)s
"""
_ARCHIVE = """
update maintenances set archived_at = at(%(now)s) where org = %(org)s and id = %(id)s
"""
_COVERED = """
select id, shard, type, enabled from monitors
where org = %(org)s and project = %(project)s and (%(monitor)s::int is null or id = %(monitor)s)
order by id
"""
# Includes deleted monitors, because their results still count in figures. A deleted monitor has no
# shard.
_COVERED_EVER = """
select k.id, coalesce(k.shard, (select min(id) from shards)) from known_monitors k
where k.org = %(org)s and k.project = %(project)s
  and (%(monitor)s::int is null or k.id = %(monitor)s)
order by k.id
"""
_INSERT_PREVIEW = """
insert into maintenance_previews (org, uid, project, mutation, maintenance, monitor, starts_at,
  ends_at, expires_at, approximate)
values (%(org)s, %(uid)s, %(project)s, %(mutation)s, %(maintenance)s, %(monitor)s, at(%(starts)s),
  at(%(ends)s), at(%(expires)s), %(approximate)s)
"""
# Deleted on use, so that a preview permits one edit.
_TAKE_PREVIEW = """
delete from maintenance_previews where org = %(org)s and uid = %(uid)s and project = %(project)s
returning mutation, maintenance, monitor, starts_at, ends_at, expires_at, approximate
"""
_DROP_PREVIEWS = "delete from maintenance_previews where expires_at < at(%(now)s)"
_OVER = f"""
select {_COLUMNS} {_FROM}
where x.resumed_at is null and x.archived_at is null
  and least(x.ends_at, x.cancel_effective_at) <= at(%(now)s)
order by least(x.ends_at, x.cancel_effective_at) limit %(most)s
for no key update of x skip locked
"""
_RESUMED = "update maintenances set resumed_at = at(%(now)s) where org = %(org)s and id = %(id)s"
_IS_OVER = """
select exists (select from maintenances where resumed_at is null and archived_at is null
  and least(ends_at, cancel_effective_at) <= at(%(now)s))
"""


class Covered(msgspec.Struct, frozen=True):
    """Monitor that a maintenance covers."""

    id: int
    shard: int
    type: str
    enabled: bool


class PreviewRow(msgspec.Struct, frozen=True):
    mutation: str
    maintenance: int | None
    monitor: int | None
    starts_at: Instant
    ends_at: Instant
    expires_at: Instant
    approximate: bool


async def lock_maintenance(tx: Tx, uid: UUID) -> MaintenanceRow | None:
    tx.lock_rank(LockRank.PROJECT, "a maintenance to change")
    return await tx.one(MaintenanceRow, _LOCK, uid=uid)


async def count_to_come(tx: Tx, org: int, project: int) -> int:
    """Returns the number of maintenances that are not over, without those of a series."""
    count: int = await tx.value(_COUNT, org=org, project=project, now=tx.now)
    return count


async def insert_maintenance(tx: Tx, values: dict[str, Any]) -> UUID:
    uid = uuid7()
    await tx.execute(_INSERT, **{"public_title": None, **values}, uid=uid, now=tx.now)
    return uid


async def cut_short(tx: Tx, row: MaintenanceRow) -> None:
    await tx.execute(_CUT_SHORT, org=row.org, id=row.id, now=tx.now)


async def archive(tx: Tx, row: MaintenanceRow) -> None:
    await tx.execute(_ARCHIVE, org=row.org, id=row.id, now=tx.now)


async def select_covered(tx: Tx, org: int, project: int, monitor: int | None) -> list[Covered]:
    return await tx.structs(Covered, _COVERED, org=org, project=project, monitor=monitor)


async def select_covered_ever(
    tx: Tx, org: int, project: int, monitor: int | None
) -> list[tuple[int, int]]:
    """Returns (monitor, shard that repairs its figures), including deleted monitors."""
    rows = await tx.rows(_COVERED_EVER, org=org, project=project, monitor=monitor)
    return [(id_, shard) for id_, shard in rows]


async def insert_preview(tx: Tx, values: dict[str, Any]) -> UUID:
    uid = uuid7()
    await tx.execute(_INSERT_PREVIEW, **values, uid=uid)
    return uid


async def pop_preview(tx: Tx, org: int, project: int, uid: UUID) -> PreviewRow | None:
    return await tx.one(PreviewRow, _TAKE_PREVIEW, org=org, project=project, uid=uid)


async def purge_expired_previews(tx: Tx) -> int:
    return await tx.execute(_DROP_PREVIEWS, now=tx.now)


async def is_any_over(tx: Tx, now: Instant) -> bool:
    found: bool = await tx.value(_IS_OVER, now=now)
    return found


async def lock_over(tx: Tx, most: int) -> Sequence[MaintenanceRow]:
    """Locks ended maintenances without a recheck, except locked ones."""
    tx.lock_rank(LockRank.PROJECT, "ended maintenances")
    return await tx.structs(MaintenanceRow, _OVER, now=tx.now, most=most)


async def mark_resumed(tx: Tx, row: MaintenanceRow) -> None:
    await tx.execute(_RESUMED, org=row.org, id=row.id, now=tx.now)
