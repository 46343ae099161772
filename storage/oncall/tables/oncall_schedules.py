"""On-call schedules and their participants in the order of rotation.

An edit of a schedule, its participants or its overrides locks the schedule. A transaction that
refers to a schedule takes a shared lock. Of the calendar token, only the hash is stored.
"""

from collections.abc import Collection
from uuid import UUID

from ...core.instant import SECOND
from ...engine.pools import LockRank, Tx
from ..rows import ScheduleRow
from ..rules.oncall_schedule import OnCallSchedule

_COLUMNS = """
s.org, s.id, s.uid, s.project, p.uid, s.name, s.anchor_at, s.shift_seconds, s.timezone,
s.calendar_token_hash is not null, s.created_at, s.updated_at
"""
_FROM = "from oncall_schedules s join projects p on p.org = s.org and p.id = s.project"
_BY_UID = f"select {_COLUMNS} {_FROM} where s.uid = %(uid)s"
_LOCK = f"{_BY_UID} for update of s"
_BY_KEYS = f"select {_COLUMNS} {_FROM} where s.org = %(org)s and s.id = any(%(ids)s::int[])"
_COUNT = "select count(*) from oncall_schedules where org = %(org)s and project = %(project)s"
_INSERT = """
insert into oncall_schedules
  (org, uid, project, name, anchor_at, shift_seconds, timezone, created_at, updated_at)
values (%(org)s, %(uid)s, %(project)s, %(name)s, at(%(anchor_at)s), %(shift_seconds)s,
  %(timezone)s, at(%(now)s), at(%(now)s))
returning id
"""
_UPDATE = """
update oncall_schedules set name = %(name)s, anchor_at = at(%(anchor_at)s),
  shift_seconds = %(shift_seconds)s, timezone = %(timezone)s, updated_at = at(%(now)s)
where org = %(org)s and id = %(id)s
"""
_DELETE = "delete from oncall_schedules where org = %(org)s and id = %(id)s"
_DROP_PARTICIPANTS = "delete from oncall_participants where org = %(org)s and schedule = %(id)s"
_ADD_PARTICIPANTS = """
insert into oncall_participants (org, schedule, place, channel)
select %(org)s, %(id)s, t.place, t.channel
from unnest(%(channels)s::int[]) with ordinality as t (channel, place)
"""
# The shared lock prevents deletion. Several rows are locked in ascending order of their ids.
_HOLD = """
select uid, id from oncall_schedules
where uid = any(%(uids)s::uuid[]) and org = %(org)s and project = %(project)s
order by id for key share
"""
_SET_TOKEN = """
update oncall_schedules set calendar_token_hash = %(hash)s
where org = %(org)s and id = %(id)s
"""


async def select_schedules_by_keys(tx: Tx, org: int, keys: Collection[int]) -> list[ScheduleRow]:
    return await tx.structs(ScheduleRow, _BY_KEYS, org=org, ids=sorted(keys))


async def lock_schedule(tx: Tx, uid: UUID) -> ScheduleRow | None:
    tx.lock_rank(LockRank.ROSTER, "a schedule to change")
    return await tx.one(ScheduleRow, _LOCK, uid=uid)


async def lock_shared_schedules(
    tx: Tx, org: int, project: int, uids: Collection[UUID]
) -> dict[UUID, int]:
    """Locks those schedules that belong to the project, shared, and returns their ids."""
    tx.lock_rank(LockRank.ROSTER, "referenced schedules")
    return dict(await tx.rows(_HOLD, org=org, project=project, uids=list(uids)))


async def count_schedules(tx: Tx, org: int, project: int) -> int:
    count: int = await tx.value(_COUNT, org=org, project=project)
    return count


async def insert_schedule(
    tx: Tx, org: int, project: int, uid: UUID, name: str, roster: OnCallSchedule
) -> None:
    key = await tx.value(
        _INSERT,
        org=org,
        project=project,
        uid=uid,
        name=name,
        anchor_at=roster.anchor_at,
        shift_seconds=roster.shift_us // SECOND,
        timezone=roster.timezone,
        now=tx.now,
    )
    await tx.execute(_ADD_PARTICIPANTS, org=org, id=key, channels=list(roster.participants))


async def update_schedule(tx: Tx, row: ScheduleRow, name: str, roster: OnCallSchedule) -> None:
    count = await tx.execute(
        _UPDATE,
        org=row.org,
        id=row.id,
        name=name,
        anchor_at=roster.anchor_at,
        shift_seconds=roster.shift_us // SECOND,
        timezone=roster.timezone,
        now=tx.now,
    )
    assert count == 1, "the locked schedule is missing"
    await tx.execute(_DROP_PARTICIPANTS, org=row.org, id=row.id)
    await tx.execute(_ADD_PARTICIPANTS, org=row.org, id=row.id, channels=list(roster.participants))


async def delete_schedule(tx: Tx, row: ScheduleRow) -> None:
    await tx.execute(_DELETE, org=row.org, id=row.id)


async def set_calendar_token(tx: Tx, row: ScheduleRow, token_hash: bytes) -> None:
    """Stores a new token hash. The former token becomes invalid."""
    count = await tx.execute(_SET_TOKEN, org=row.org, id=row.id, hash=token_hash)
    assert count == 1, "the locked schedule is missing"
