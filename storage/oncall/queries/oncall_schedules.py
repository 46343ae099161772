"""Reads of on-call schedules, with their participants and the overrides of a span."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

import trio

from ...core.instant import Instant
from ...engine.pools import Tx
from ..rows import LayerRow, OnCallOverrideRow, ParticipantRow, ScheduleRow
from ..rules.oncall_schedule import OnCallOverride, OnCallSchedule, stretch
from ..tables.oncall_overrides import select_overrides_between
from ..tables.oncall_schedules import _BY_UID, _COLUMNS, _FROM, select_schedules_by_keys

NOBODY: Final = "Nobody"


@dataclass(frozen=True, slots=True)
class ScheduleRoster:
    """Schedule with its layers, participants, and the overrides that overlap the requested span."""

    schedule: ScheduleRow
    participants: list[ParticipantRow]
    override_rows: list[OnCallOverrideRow]
    layers: list[LayerRow] = field(default_factory=list)

    @property
    def roster(self) -> OnCallSchedule:
        return self.schedule.roster(self.layers, self.participants)

    @property
    def overrides(self) -> list[OnCallOverride]:
        return [row.as_rule for row in self.override_rows]

    def name_of(self, channel: int | None) -> str:
        """Returns the name of a channel that can be on call in the span, NOBODY for a gap."""
        if channel is None:
            return NOBODY
        for person in self.participants:
            if person.channel == channel:
                return person.name
        return next(row.channel_name for row in self.override_rows if row.channel == channel)


async def select_rosters(
    tx: Tx, org: int, schedules: Collection[ScheduleRow], from_at: Instant, until: Instant
) -> list[ScheduleRoster]:
    """Returns rosters in the order of `schedules`, with the overrides of [from_at, until).

    Args:
        schedules: rows of one organization.
    """
    keys = [row.id for row in schedules]
    people = await select_participants(tx, org, keys)
    overrides = await select_overrides_between(tx, org, keys, from_at, until)
    layers = await select_layers(tx, org, keys)
    return [
        ScheduleRoster(row, people[row.id], overrides[row.id], layers[row.id]) for row in schedules
    ]


_BY_TOKEN = f"{_BY_UID} and s.calendar_token_hash = %(hash)s"

_OF_PROJECT = f"""
select {_COLUMNS} {_FROM} where s.org = %(org)s and s.project = %(project)s order by s.id
"""

_PARTICIPANTS = """
select t.schedule, t.channel, c.uid, c.name, c.enabled, c.person is not null, t.layer
from oncall_participants t join notification_channels c on c.org = t.org and c.id = t.channel
where t.org = %(org)s and t.schedule = any(%(schedules)s::int[])
order by t.schedule, t.layer, t.place
"""

_LAYERS = """
select schedule, name, anchor_at, shift_seconds, timezone, restrictions, starts_at, ends_at
from oncall_layers where org = %(org)s and schedule = any(%(schedules)s::int[])
order by schedule, place
"""


async def select_schedule(tx: Tx, uid: UUID) -> ScheduleRow | None:
    return await tx.one(ScheduleRow, _BY_UID, uid=uid)


async def select_schedule_by_token(tx: Tx, uid: UUID, token_hash: bytes) -> ScheduleRow | None:
    return await tx.one(ScheduleRow, _BY_TOKEN, uid=uid, hash=token_hash)


async def select_schedules_of(tx: Tx, org: int, project: int) -> list[ScheduleRow]:
    return await tx.structs(ScheduleRow, _OF_PROJECT, org=org, project=project)


async def select_participants(
    tx: Tx, org: int, schedules: Collection[int]
) -> dict[int, list[ParticipantRow]]:
    """Returns the participants of each schedule by layer, in the order of rotation."""
    found: dict[int, list[ParticipantRow]] = {key: [] for key in schedules}
    for row in await tx.structs(
        ParticipantRow, _PARTICIPANTS, org=org, schedules=sorted(schedules)
    ):
        found[row.schedule].append(row)
    return found


async def select_layers(tx: Tx, org: int, schedules: Collection[int]) -> dict[int, list[LayerRow]]:
    """Returns the layers of each schedule after its first one."""
    found: dict[int, list[LayerRow]] = {key: [] for key in schedules}
    for row in await tx.structs(LayerRow, _LAYERS, org=org, schedules=sorted(schedules)):
        found[row.schedule].append(row)
    return found


async def select_channels_on_call(
    tx: Tx, org: int, schedules: set[int], now: Instant
) -> dict[int, int]:
    """Returns the key of the channel that is on call, by the key of its schedule.

    A schedule with a gap at this instant is absent, and so is one that was deleted since it was
    read.
    """
    if not schedules:
        return {}
    rows = await select_schedules_by_keys(tx, org, schedules)
    found = {}
    for one in await select_rosters(tx, org, rows, now, Instant(now + 1)):
        channel = stretch(one.roster, one.overrides, now).channel
        if channel is not None:
            found[one.schedule.id] = channel
        await trio.lowlevel.checkpoint()
    return found
