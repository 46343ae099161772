"""Overrides of schedules: for a while somebody else is on call. A later row wins.

They are written while their schedule is locked, so that keys rise in the order of their making.
"""

from collections.abc import Collection
from uuid import UUID

from ...core.instant import Instant
from ...engine.pools import Tx
from ..rows import OnCallOverrideRow

_COLUMNS = """
o.org, o.id, o.uid, o.schedule, s.uid, s.project, o.channel, c.uid, c.name, o.starts_at, o.ends_at,
o.created_at
"""
_FROM = """
from oncall_overrides o join oncall_schedules s on s.org = o.org and s.id = o.schedule
  join notification_channels c on c.org = o.org and c.id = o.channel
"""
_BETWEEN = f"""
select {_COLUMNS} {_FROM}
where o.org = %(org)s and o.schedule = any(%(schedules)s::int[])
  and o.ends_at > at(%(from_at)s) and o.starts_at < at(%(until)s)
order by o.id
"""
_SCHEDULE_UID = """
select s.uid from oncall_overrides o
  join oncall_schedules s on s.org = o.org and s.id = o.schedule
where o.uid = %(uid)s
"""
_COUNT_COMING = """
select count(*) from oncall_overrides
where org = %(org)s and schedule = %(schedule)s and ends_at > at(%(now)s)
"""
_INSERT = """
insert into oncall_overrides (org, uid, schedule, channel, starts_at, ends_at, created_at)
values (%(org)s, %(uid)s, %(schedule)s, %(channel)s, at(%(starts_at)s), at(%(ends_at)s),
  at(%(now)s))
"""
_DELETE = "delete from oncall_overrides where org = %(org)s and id = %(id)s"
_DROP_OLDEST = """
delete from oncall_overrides where org = %(org)s and id in (
  select id from oncall_overrides
  where org = %(org)s and schedule = %(schedule)s and ends_at <= at(%(now)s)
  order by ends_at desc, id desc offset %(keep)s)
"""


async def select_schedule_of(tx: Tx, uid: UUID) -> UUID | None:
    """The schedule of an override, to be locked before the override is looked at."""
    found: UUID | None = await tx.value(_SCHEDULE_UID, uid=uid)
    return found


async def select_overrides_between(
    tx: Tx, org: int, schedules: Collection[int], from_at: Instant, until: Instant
) -> dict[int, list[OnCallOverrideRow]]:
    """Of each schedule those that hold at some instant of [from_at, until)."""
    found: dict[int, list[OnCallOverrideRow]] = {key: [] for key in schedules}
    for row in await tx.structs(
        OnCallOverrideRow,
        _BETWEEN,
        org=org,
        schedules=sorted(schedules),
        from_at=from_at,
        until=until,
    ):
        found[row.schedule].append(row)
    return found


async def count_coming(tx: Tx, org: int, schedule: int) -> int:
    """How many are not over yet."""
    count: int = await tx.value(_COUNT_COMING, org=org, schedule=schedule, now=tx.now)
    return count


async def insert_override(
    tx: Tx,
    org: int,
    schedule: int,
    uid: UUID,
    channel: int,
    starts_at: Instant,
    ends_at: Instant,
) -> None:
    await tx.execute(
        _INSERT,
        org=org,
        schedule=schedule,
        uid=uid,
        channel=channel,
        starts_at=starts_at,
        ends_at=ends_at,
        now=tx.now,
    )


async def delete_override(tx: Tx, row: OnCallOverrideRow) -> bool:
    """False where somebody else removed it meanwhile."""
    return await tx.execute(_DELETE, org=row.org, id=row.id) == 1


async def purge_oldest_past(tx: Tx, org: int, schedule: int, keep: int) -> None:
    """Of those that are over, the latest `keep` stay."""
    await tx.execute(_DROP_OLDEST, org=org, schedule=schedule, now=tx.now, keep=keep)
