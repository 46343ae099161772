"""Edits of on-call schedules by editors of the project. An update replaces all fields.

A new calendar token invalidates the former one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from uuid_utils.compat import uuid7

from ...accounts.rows import ProjectRow
from ...accounts.rules.access import Need, Permission, Principal
from ...accounts.transactions.authorize import audit, demand_project, demand_row, is_managed
from ...accounts.transactions.authorize_tenant_write import lock_project
from ...core.instant import SECOND, Instant
from ...core.naming import name_fault
from ...core.refusal import Refused, expect
from ...engine.pools import Tx
from ..queries import oncall_schedules, oncall_uses
from ..rows import ScheduleRow
from ..rules.escalation import TargetKind
from ..rules.oncall_schedule import (
    LAYERS_MOST,
    OnCallLayer,
    OnCallSchedule,
    layer_fault,
    windows_of_schedule_fault,
)
from ..rules.weekly_hours import WeeklyWindow
from ..tables import oncall_schedules as oncall
from .check_targets import RequestedTarget, lock_targets

SCHEDULES_OF_PROJECT_MOST: Final = 100
EDIT = Permission(Need.EDITOR)


@dataclass(frozen=True, slots=True)
class LayerDraft:
    """Requested layer. `participants` are ids of channels and members, in rotation order."""

    name: str
    shift_seconds: int
    anchor_at: Instant
    participants: Sequence[str]
    timezone: str = ""
    windows: tuple[WeeklyWindow, ...] = ()
    starts_at: Instant | None = None
    ends_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class ScheduleDraft(LayerDraft):
    """Requested schedule with its first layer. Further `layers` take precedence over it."""

    layers: Sequence[LayerDraft] = ()
    hand_off_email: bool = False

    @property
    def every(self) -> list[tuple[str, LayerDraft]]:
        """Returns (prefix of the field names, layer) of each layer."""
        return [
            ("", self),
            *((f"layers[{place}].", layer) for place, layer in enumerate(self.layers)),
        ]

    @property
    def layer_names(self) -> list[str]:
        return [layer.name for layer in self.layers]


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
    return await create_held_schedule(tx, principal, home, uuid7(), draft)


async def create_held_schedule(
    tx: Tx, principal: Principal, home: ProjectRow, uid: UUID, draft: ScheduleDraft
) -> ScheduleRow:
    """Creates a schedule in a locked project that has room for it.

    Raises:
        Refused invalid with its field.
    """
    _check(draft)
    roster = await _roster(tx, home.org, home.id, draft)
    await oncall.insert_schedule(
        tx,
        home.org,
        home.id,
        uid,
        draft.name,
        roster,
        draft.layer_names,
        hand_off_email=draft.hand_off_email,
    )
    row = await _written(tx, uid)
    await audit(tx, principal, row.org, "oncall_schedule.create", target_of(row))
    return row


async def replace_schedule(
    tx: Tx, principal: Principal, schedule: UUID, draft: ScheduleDraft
) -> ScheduleRow:
    """Replaces a schedule. Keeps its overrides and calendar token. An equal one is not written.

    Raises:
        Refused not_found, forbidden, invalid with its field, managed_by_file.
    """
    before = await lock_for_edit(tx, principal, schedule)
    _expect_unmanaged(principal, before)
    _check(draft)
    roster = await _roster(tx, before.org, before.project, draft)
    people = await oncall_schedules.select_participants(tx, before.org, [before.id])
    layers = (await oncall_schedules.select_layers(tx, before.org, [before.id]))[before.id]
    stored = before.roster(layers, people[before.id])
    names = [layer.name for layer in layers]
    kept = (before.name, before.hand_off_email, names, stored)
    if (draft.name, draft.hand_off_email, draft.layer_names, roster) == kept:
        return before
    await oncall.update_schedule(
        tx, before, draft.name, roster, draft.layer_names, hand_off_email=draft.hand_off_email
    )
    row = await _written(tx, schedule)
    await audit(tx, principal, row.org, "oncall_schedule.update", target_of(row))
    return row


async def delete_schedule(tx: Tx, principal: Principal, schedule: UUID) -> None:
    """Deletes a schedule with its overrides.

    Raises:
        Refused not_found, forbidden, managed_by_file, and in_use if an escalation policy or a
        service refers to it.
    """
    row = await lock_for_edit(tx, principal, schedule)
    _expect_unmanaged(principal, row)
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


async def lock_for_edit(
    tx: Tx, principal: Principal, schedule: UUID, action: Permission = EDIT
) -> ScheduleRow:
    """Locks the schedule for an editor.

    Raises:
        Refused not_found, forbidden.
    """
    return demand_row(principal, action, await oncall.lock_schedule(tx, schedule))


def _expect_unmanaged(principal: Principal, row: ScheduleRow) -> None:
    if is_managed(principal, row.managed_by, row.orphaned_at):
        raise Refused("managed_by_file")


def target_of(row: ScheduleRow) -> str:
    """Returns the target of audit rows about a schedule."""
    return f"oncall_schedule:{row.uid} project:{row.project_uid}"


def _check(draft: ScheduleDraft) -> None:
    if len(draft.layers) > LAYERS_MOST - 1:
        raise Refused("invalid", "layers", f"must have at most {LAYERS_MOST - 1} entries")
    for prefix, layer in draft.every:
        expect(f"{prefix}name", name_fault(layer.name))
        wrong = layer_fault(_layer(layer, ()), len(layer.participants))
        if wrong is not None:
            raise Refused("invalid", f"{prefix}{wrong[0]}", wrong[1])
    too_many = windows_of_schedule_fault([layer.windows for _, layer in draft.every])
    if too_many is not None:
        place, rule = too_many
        raise Refused("invalid", f"{draft.every[place][0]}restrictions", rule)


async def _roster(tx: Tx, org: int, project: int, draft: ScheduleDraft) -> OnCallSchedule:
    given = [
        RequestedTarget(f"{prefix}participants[{place}]", TargetKind.CHANNEL, text, or_person=True)
        for prefix, layer in draft.every
        for place, text in enumerate(layer.participants)
    ]
    held = iter(await lock_targets(tx, org, project, given))
    return OnCallSchedule(
        tuple(
            _layer(layer, tuple(next(held).key for _ in layer.participants))
            for _, layer in draft.every
        )
    )


def _layer(draft: LayerDraft, participants: tuple[int, ...]) -> OnCallLayer:
    return OnCallLayer(
        draft.anchor_at,
        draft.shift_seconds * SECOND,
        participants,
        draft.timezone,
        draft.windows,
        draft.starts_at,
        draft.ends_at,
    )


async def _written(tx: Tx, schedule: UUID) -> ScheduleRow:
    row = await oncall_schedules.select_schedule(tx, schedule)
    assert row is not None, "the new row is missing"
    return row
