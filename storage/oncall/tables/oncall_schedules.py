"""On-call schedules, their layers, and the participants of each in the order of rotation.

An edit of a schedule, its participants or its overrides locks the schedule. A transaction that
refers to a schedule takes a shared lock. Of the calendar token, only the hash is stored.
"""

from collections.abc import Collection, Sequence
from typing import Any
from uuid import UUID

import msgspec

from ...core.instant import SECOND, Instant
from ...engine.pools import LockRank, Tx
from ..rows import ScheduleRow
from ..rules.oncall_schedule import OnCallLayer, OnCallSchedule
from ..rules.weekly_hours import window_text

_COLUMNS = """
s.org, s.id, s.uid, s.project, p.uid, s.name, s.anchor_at, s.shift_seconds, s.timezone,
s.calendar_token_hash is not null, s.created_at, s.updated_at, s.restrictions, s.starts_at,
s.ends_at, s.hand_off_email, s.managed_by, s.bundle_uid, s.bundle_path, s.orphaned_at
"""
_FROM = "from oncall_schedules s join projects p on p.org = s.org and p.id = s.project"
_BY_UID = f"select {_COLUMNS} {_FROM} where s.uid = %(uid)s"
_LOCK = f"{_BY_UID} for update of s"
_BY_KEYS = f"select {_COLUMNS} {_FROM} where s.org = %(org)s and s.id = any(%(ids)s::int[])"
_COUNT = "select count(*) from oncall_schedules where org = %(org)s and project = %(project)s"
_INSERT = """
insert into oncall_schedules
  (org, uid, project, name, anchor_at, shift_seconds, timezone, restrictions, starts_at, ends_at,
  hand_off_email, created_at, updated_at)
values (%(org)s, %(uid)s, %(project)s, %(name)s, at(%(anchor_at)s), %(shift_seconds)s,
  %(timezone)s, %(restrictions)s::text[], at(%(starts_at)s), at(%(ends_at)s),
  %(hand_off_email)s, at(%(now)s), at(%(now)s))
returning id
"""
_UPDATE = """
update oncall_schedules set name = %(name)s, anchor_at = at(%(anchor_at)s),
  shift_seconds = %(shift_seconds)s, timezone = %(timezone)s,
  restrictions = %(restrictions)s::text[], starts_at = at(%(starts_at)s),
  ends_at = at(%(ends_at)s), hand_off_email = %(hand_off_email)s, updated_at = at(%(now)s),
  hand_off_at = case
    when %(hand_off_email)s and hand_off_at is not null then least(hand_off_at, at(%(now)s))
  end
where org = %(org)s and id = %(id)s
"""
_DELETE = "delete from oncall_schedules where org = %(org)s and id = %(id)s"
_DROP_PARTICIPANTS = "delete from oncall_participants where org = %(org)s and schedule = %(id)s"
_ADD_PARTICIPANTS = """
insert into oncall_participants (org, schedule, place, channel, layer)
select %(org)s, %(id)s, t.place, t.channel, t.layer
from unnest(%(channels)s::int[], %(layers)s::int[]) with ordinality as t (channel, layer, place)
"""
_DROP_LAYERS = "delete from oncall_layers where org = %(org)s and schedule = %(id)s"
_ADD_LAYER = """
insert into oncall_layers
  (org, schedule, place, name, anchor_at, shift_seconds, timezone, restrictions, starts_at, ends_at)
values (%(org)s, %(id)s, %(place)s, %(name)s, at(%(anchor_at)s), %(shift_seconds)s, %(timezone)s,
  %(restrictions)s::text[], at(%(starts_at)s), at(%(ends_at)s))
"""
# The shared lock prevents deletion. Several rows are locked in ascending order of their ids.
_HOLD = """
select uid, id from oncall_schedules
where uid = any(%(uids)s::uuid[]) and org = %(org)s and project = %(project)s
order by id for key share
"""
_LOOK_AGAIN = """
update oncall_schedules set hand_off_at = at(%(now)s)
where org = %(org)s and id = %(id)s and hand_off_at > at(%(now)s)
"""
_HAND_OFFS_DUE = """
select uid from oncall_schedules
where hand_off_email and (hand_off_at is null or hand_off_at <= at(%(now)s))
order by hand_off_at nulls first limit %(most)s
"""
_HAND_OFF = """
select hand_off_at, handed_to, handed_at from oncall_schedules
where org = %(org)s and id = %(id)s
"""
_SET_HAND_OFF = """
update oncall_schedules set hand_off_at = at(%(next_at)s), handed_to = %(channel)s,
  handed_at = at(%(handed_at)s)
where org = %(org)s and id = %(id)s
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
    tx: Tx,
    org: int,
    project: int,
    uid: UUID,
    name: str,
    roster: OnCallSchedule,
    layer_names: Sequence[str] = (),
    *,
    hand_off_email: bool = False,
) -> None:
    """Inserts a schedule. `layer_names` are those of the layers after the first one."""
    first = roster.layers[0]
    key = await tx.value(
        _INSERT,
        org=org,
        project=project,
        uid=uid,
        name=name,
        hand_off_email=hand_off_email,
        now=tx.now,
        **_columns(first),
    )
    await _add_layers(tx, org, key, roster, layer_names)


async def update_schedule(
    tx: Tx,
    row: ScheduleRow,
    name: str,
    roster: OnCallSchedule,
    layer_names: Sequence[str] = (),
    *,
    hand_off_email: bool = False,
) -> None:
    first = roster.layers[0]
    count = await tx.execute(
        _UPDATE,
        org=row.org,
        id=row.id,
        name=name,
        hand_off_email=hand_off_email,
        now=tx.now,
        **_columns(first),
    )
    assert count == 1, "the locked schedule is missing"
    await tx.execute(_DROP_PARTICIPANTS, org=row.org, id=row.id)
    await tx.execute(_DROP_LAYERS, org=row.org, id=row.id)
    await _add_layers(tx, row.org, row.id, roster, layer_names)


async def _add_layers(
    tx: Tx, org: int, key: int, roster: OnCallSchedule, layer_names: Sequence[str]
) -> None:
    for place, (layer, name) in enumerate(zip(roster.layers[1:], layer_names, strict=True), 1):
        await tx.execute(_ADD_LAYER, org=org, id=key, place=place, name=name, **_columns(layer))
    people = [
        (channel, place)
        for place, layer in enumerate(roster.layers)
        for channel in layer.participants
    ]
    await tx.execute(
        _ADD_PARTICIPANTS,
        org=org,
        id=key,
        channels=[channel for channel, _ in people],
        layers=[place for _, place in people],
    )


def _columns(layer: OnCallLayer) -> dict[str, Any]:
    return {
        "anchor_at": layer.anchor_at,
        "shift_seconds": layer.shift_us // SECOND,
        "timezone": layer.timezone,
        "restrictions": [window_text(window) for window in layer.windows],
        "starts_at": layer.starts_at,
        "ends_at": layer.ends_at,
    }


async def delete_schedule(tx: Tx, row: ScheduleRow) -> None:
    await tx.execute(_DELETE, org=row.org, id=row.id)


async def set_calendar_token(tx: Tx, row: ScheduleRow, token_hash: bytes) -> None:
    """Stores a new token hash. The former token becomes invalid."""
    count = await tx.execute(_SET_TOKEN, org=row.org, id=row.id, hash=token_hash)
    assert count == 1, "the locked schedule is missing"


async def look_at_hand_off_again(tx: Tx, row: ScheduleRow) -> None:
    """Makes the next hand-off due, because an override changed the duties."""
    await tx.execute(_LOOK_AGAIN, org=row.org, id=row.id, now=tx.now)


async def select_hand_offs_due(tx: Tx, most: int) -> list[UUID]:
    return [uid for (uid,) in await tx.rows(_HAND_OFFS_DUE, now=tx.now, most=most)]


class HandOffRow(msgspec.Struct, frozen=True):
    """State of the hand-offs of a schedule. `looked_for_at` is None before the first pass."""

    looked_for_at: Instant | None
    channel: int | None
    since: Instant | None


async def select_hand_off(tx: Tx, row: ScheduleRow) -> HandOffRow:
    found = await tx.one(HandOffRow, _HAND_OFF, org=row.org, id=row.id)
    assert found is not None, "the locked schedule is missing"
    return found


async def set_hand_off(
    tx: Tx, row: ScheduleRow, next_at: Instant, channel: int | None, since: Instant
) -> None:
    await tx.execute(
        _SET_HAND_OFF, org=row.org, id=row.id, next_at=next_at, channel=channel, handed_at=since
    )
