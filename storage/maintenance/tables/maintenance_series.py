"""Recurring maintenance, and the instant up to which its windows are announced."""

from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from ...core.instant import Instant
from ...engine.pools import LockRank, Tx
from ..rows import SeriesRow

_SELECT = """
select x.org, x.id, x.uid, x.project, p.uid, x.monitor, m.uid, x.rrule, x.starts_at,
  x.duration_seconds, x.timezone, x.reason, x.generated_through, x.ended_at, x.created_at
from maintenance_series x join projects p on p.org = x.org and p.id = x.project
  left join monitors m on m.org = x.org and m.id = x.monitor
"""
_BY_UID = f"{_SELECT} where x.uid = %(uid)s"
_LOCK = f"{_BY_UID} for no key update of x"
_LOCK_FREE = f"{_LOCK} skip locked"
_COUNT = """
select count(*) from maintenance_series
where org = %(org)s and project = %(project)s and ended_at is null
"""
_INSERT = """
insert into maintenance_series (org, uid, project, monitor, rrule, starts_at, duration_seconds,
  timezone, reason, generated_through, created_at)
values (%(org)s, %(uid)s, %(project)s, %(monitor)s, %(rrule)s, at(%(starts)s), %(duration)s,
  %(timezone)s, %(reason)s, at(%(starts)s) - interval '1 microsecond', at(%(now)s))
"""
_END = "update maintenance_series set ended_at = at(%(now)s) where org = %(org)s and id = %(id)s"
_CHANGE = """
update maintenance_series set monitor = %(monitor)s, rrule = %(rrule)s, starts_at = at(%(starts)s),
  duration_seconds = %(duration)s, timezone = %(timezone)s, reason = %(reason)s,
  generated_through = at(%(starts)s) - interval '1 microsecond'
where org = %(org)s and id = %(id)s
"""
_RENAME = "update maintenance_series set reason = %(reason)s where org = %(org)s and id = %(id)s"
_RENAME_TO_COME = """
update maintenances set reason = %(reason)s
where org = %(org)s and series = %(series)s and archived_at is null and starts_at > at(%(now)s)
"""
_ARCHIVE_TO_COME = """
update maintenances set archived_at = at(%(now)s)
where org = %(org)s and series = %(series)s and archived_at is null and starts_at > at(%(now)s)
"""
_ANNOUNCED = """
update maintenance_series set generated_through = at(%(through)s)
where org = %(org)s and id = %(id)s
"""
_BEHIND = """
select uid from maintenance_series
where ended_at is null and generated_through < at(%(through)s) order by generated_through
limit %(most)s
"""
_TO_COME = """
select uid from maintenances
where org = %(org)s and series = %(series)s and archived_at is null and starts_at > at(%(now)s)
order by id
"""


async def select_one_series(tx: Tx, uid: UUID) -> SeriesRow | None:
    return await tx.one(SeriesRow, _BY_UID, uid=uid)


async def lock_series(tx: Tx, uid: UUID) -> SeriesRow | None:
    """Locks a series. An end and an announcement exclude each other."""
    tx.lock_rank(LockRank.PROJECT, "a maintenance series")
    return await tx.one(SeriesRow, _LOCK, uid=uid)


async def lock_free_series(tx: Tx, uid: UUID) -> SeriesRow | None:
    """Locks a series, None if another transaction has locked it, such as that of a bundle."""
    tx.lock_rank(LockRank.PROJECT, "a maintenance series")
    return await tx.one(SeriesRow, _LOCK_FREE, uid=uid)


async def count_series(tx: Tx, org: int, project: int) -> int:
    count: int = await tx.value(_COUNT, org=org, project=project)
    return count


async def insert_series(tx: Tx, values: dict[str, Any], uid: UUID | None = None) -> UUID:
    own = uuid7() if uid is None else uid
    await tx.execute(_INSERT, **values, uid=own, now=tx.now)
    return own


async def change_series(tx: Tx, row: SeriesRow, values: dict[str, Any]) -> None:
    """Replaces the settings of a locked series, whose windows must be announced again."""
    await tx.execute(_CHANGE, org=row.org, id=row.id, **values)


async def change_reason(tx: Tx, row: SeriesRow, reason: str) -> None:
    """Changes the reason of a locked series and of its windows that have not begun."""
    await tx.execute(_RENAME, org=row.org, id=row.id, reason=reason)
    await tx.execute(_RENAME_TO_COME, org=row.org, series=row.id, reason=reason, now=tx.now)


async def archive_to_come(tx: Tx, row: SeriesRow) -> None:
    """Archives the windows of a series that have not begun."""
    await tx.execute(_ARCHIVE_TO_COME, org=row.org, series=row.id, now=tx.now)


async def end_series(tx: Tx, row: SeriesRow) -> None:
    await tx.execute(_END, org=row.org, id=row.id, now=tx.now)


async def mark_announced(tx: Tx, row: SeriesRow, through: Instant) -> None:
    await tx.execute(_ANNOUNCED, org=row.org, id=row.id, through=through)


async def select_behind(tx: Tx, through: Instant, most: int) -> list[UUID]:
    """Returns series whose windows are not announced up to `through`."""
    return [uid for (uid,) in await tx.rows(_BEHIND, through=through, most=most)]


async def select_windows_to_come(tx: Tx, row: SeriesRow) -> list[UUID]:
    rows = await tx.rows(_TO_COME, org=row.org, series=row.id, now=tx.now)
    return [uid for (uid,) in rows]
