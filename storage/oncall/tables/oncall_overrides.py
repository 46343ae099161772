"""Overrides of on-call schedules. Of several active ones, the latest row has precedence.

Every write locks the schedule first, so that ids ascend in the order of creation.
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
    """Returns the schedule of an override. It is locked before the override is read."""
    found: UUID | None = await tx.value(_SCHEDULE_UID, uid=uid)
    return found


async def select_overrides_between(
    tx: Tx, org: int, schedules: Collection[int], from_at: Instant, until: Instant
) -> dict[int, list[OnCallOverrideRow]]:
    """Returns the overrides of each schedule that overlap [from_at, until)."""
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
    """Returns the number of overrides that have not ended."""
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
    """Deletes an override. Returns False if a concurrent transaction has deleted it."""
    return await tx.execute(_DELETE, org=row.org, id=row.id) == 1


async def purge_oldest_past(tx: Tx, org: int, schedule: int, keep: int) -> None:
    """Deletes past overrides of a schedule except the latest `keep`."""
    await tx.execute(_DROP_OLDEST, org=org, schedule=schedule, now=tx.now, keep=keep)
