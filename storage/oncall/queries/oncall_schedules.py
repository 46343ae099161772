"""Schedules as the rule of who is on call reads them, with the overrides of a span of time."""

from collections.abc import Collection
from dataclasses import dataclass

from ...core.instant import Instant
from ...engine.pools import Tx
from ..rules.oncall_schedule import Override, Roster
from ..tables.oncall_overrides import OverrideRow, select_overrides_between
from ..tables.oncall_schedules import ParticipantRow, ScheduleRow, select_participants


@dataclass(frozen=True, slots=True)
class Standing:
    """A schedule with who takes part and which overrides hold in the span that was asked for."""

    schedule: ScheduleRow
    participants: list[ParticipantRow]
    override_rows: list[OverrideRow]

    @property
    def roster(self) -> Roster:
        return self.schedule.roster([person.channel for person in self.participants])

    @property
    def overrides(self) -> list[Override]:
        return [row.as_rule for row in self.override_rows]

    def name_of(self, channel: int) -> str:
        """Of anybody who can be on call in the span."""
        for person in self.participants:
            if person.channel == channel:
                return person.name
        return next(row.channel_name for row in self.override_rows if row.channel == channel)


async def select_rosters(
    tx: Tx, org: int, schedules: Collection[ScheduleRow], from_at: Instant, until: Instant
) -> list[Standing]:
    """In the order of `schedules`, all of one organization; overrides that hold in
    [from_at, until)."""
    keys = [row.id for row in schedules]
    people = await select_participants(tx, org, keys)
    overrides = await select_overrides_between(tx, org, keys, from_at, until)
    return [Standing(row, people[row.id], overrides[row.id]) for row in schedules]
