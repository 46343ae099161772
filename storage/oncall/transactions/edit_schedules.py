"""Edits of on-call schedules by editors of the project. An update replaces all fields.

A new calendar token invalidates the former one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from uuid_utils.compat import uuid7

from ...accounts.rules.access import Need, Permission, Principal
from ...accounts.transactions.authorize import audit, demand_project, demand_row
from ...accounts.transactions.authorize_tenant_write import lock_project
from ...core.instant import SECOND, Instant
from ...core.naming import name_fault
from ...core.refusal import Refused, expect
from ...engine.pools import Tx
from ..queries import oncall_schedules, oncall_uses
from ..rows import ScheduleRow
from ..rules.escalation import TargetKind
from ..rules.oncall_schedule import OnCallSchedule, roster_fault
from ..tables import oncall_schedules as oncall
from .check_targets import RequestedTarget, lock_targets

SCHEDULES_OF_PROJECT_MOST: Final = 100
EDIT = Permission(Need.EDITOR)


@dataclass(frozen=True, slots=True)
class ScheduleDraft:
    """Requested schedule. `participants` are ids of channels and members, in rotation order."""

    name: str
    shift_seconds: int
    anchor_at: Instant
    participants: Sequence[str]
    timezone: str = ""


async def create_schedule(
    tx: Tx, principal: Principal, project: UUID, draft: ScheduleDraft
) -> ScheduleRow:
    """Creates a schedule.

    Raises:
        Refused not_found, forbidden, invalid with its field, schedule_quota.
    """
    home = await demand_project(tx, principal, EDIT, project)
    _check(draft)
    await lock_project(tx, home)
    if await oncall.count_schedules(tx, home.org, home.id) >= SCHEDULES_OF_PROJECT_MOST:
        raise Refused("schedule_quota")
    roster = await _roster(tx, home.org, home.id, draft)
    uid = uuid7()
    await oncall.insert_schedule(tx, home.org, home.id, uid, draft.name, roster)
    row = await _written(tx, uid)
    await audit(tx, principal, row.org, "oncall_schedule.create", target_of(row))
    return row


async def replace_schedule(
    tx: Tx, principal: Principal, schedule: UUID, draft: ScheduleDraft
) -> ScheduleRow:
    """Replaces a schedule. Keeps its overrides and calendar token. An equal one is not written.

    Raises:
        Refused not_found, forbidden, invalid with its field.
    """
    before = await lock_for_edit(tx, principal, schedule)
    _check(draft)
    roster = await _roster(tx, before.org, before.project, draft)
    people = await oncall_schedules.select_participants(tx, before.org, [before.id])
    stored = before.roster([person.channel for person in people[before.id]])
    if (draft.name, roster) == (before.name, stored):
        return before
    await oncall.update_schedule(tx, before, draft.name, roster)
    row = await _written(tx, schedule)
    await audit(tx, principal, row.org, "oncall_schedule.update", target_of(row))
    return row


async def delete_schedule(tx: Tx, principal: Principal, schedule: UUID) -> None:
    """Deletes a schedule with its overrides.

    Raises:
        Refused not_found, forbidden, and in_use if an escalation policy or a service refers to it.
    """
    row = await lock_for_edit(tx, principal, schedule)
    if await oncall_uses.is_schedule_used(tx, row.org, row.id):
        raise Refused("in_use")
    await oncall.delete_schedule(tx, row)
    await audit(tx, principal, row.org, "oncall_schedule.delete", target_of(row))


async def renew_calendar_token(
    tx: Tx, principal: Principal, schedule: UUID, token_hash: bytes
) -> ScheduleRow:
    """Stores the hash of a new calendar token.

    Raises:
        Refused not_found, forbidden.
    """
    row = await lock_for_edit(tx, principal, schedule)
    await oncall.set_calendar_token(tx, row, token_hash)
    target = f"{target_of(row)} calendar token renewed"
    await audit(tx, principal, row.org, "oncall_schedule.update", target)
    return row


async def lock_for_edit(tx: Tx, principal: Principal, schedule: UUID) -> ScheduleRow:
    """Locks the schedule for an editor.

    Raises:
        Refused not_found, forbidden.
    """
    return demand_row(principal, EDIT, await oncall.lock_schedule(tx, schedule))


def target_of(row: ScheduleRow) -> str:
    """Returns the target of audit rows about a schedule."""
    return f"oncall_schedule:{row.uid} project:{row.project_uid}"


def _check(draft: ScheduleDraft) -> None:
    expect("name", name_fault(draft.name))
    wrong = roster_fault(
        draft.anchor_at, draft.shift_seconds, len(draft.participants), draft.timezone
    )
    if wrong is not None:
        raise Refused("invalid", *wrong)


async def _roster(tx: Tx, org: int, project: int, draft: ScheduleDraft) -> OnCallSchedule:
    given = [
        RequestedTarget(f"participants[{place}]", TargetKind.CHANNEL, text, or_person=True)
        for place, text in enumerate(draft.participants)
    ]
    held = await lock_targets(tx, org, project, given)
    return OnCallSchedule(
        draft.anchor_at,
        draft.shift_seconds * SECOND,
        tuple(target.key for target in held),
        draft.timezone,
    )


async def _written(tx: Tx, schedule: UUID) -> ScheduleRow:
    row = await oncall_schedules.select_schedule(tx, schedule)
    assert row is not None, "the new row is missing"
    return row
