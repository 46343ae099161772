"""Routes of on-call schedules: schedules, overrides and the token of the calendar."""

import os
from collections.abc import Sequence
from functools import partial
from typing import Any, Final
from uuid import UUID

from ....storage.accounts.rules.access import Need, Permission
from ....storage.core.instant import to_text
from ....storage.core.token import RANDOM_BYTES, TokenKind, digest, token_from
from ....storage.engine.pools import Tx
from ....storage.oncall.queries.oncall_overrides import select_overrides_of
from ....storage.oncall.queries.oncall_schedules import (
    select_layers,
    select_participants,
    select_schedule,
    select_schedules_of,
)
from ....storage.oncall.rows import LayerRow, OnCallOverrideRow, ParticipantRow, ScheduleRow
from ....storage.oncall.transactions.edit_overrides import create_override, delete_override
from ....storage.oncall.transactions.edit_schedules import (
    EDIT,
    LayerDraft,
    ScheduleDraft,
    create_schedule,
    delete_schedule,
    renew_calendar_token,
    replace_schedule,
)
from ...wire.errors import Problem
from ...wire.route import Request, Route
from ...wire.schema import instant_text, known
from ...wire.scope_keys import org_of, project_of
from ...wire.time_params import instant_given, instant_if_given
from ..schemas import (
    CalendarToken,
    CreateOnCallLayer,
    CreateOnCallOverride,
    CreateOnCallSchedule,
    OnCallLayer,
    OnCallOverride,
    OnCallSchedule,
)
from .weekly_windows import window_given, window_json

_ALL: Final = "/api/v1/projects/{projectID}/oncall-schedules"
_ONE: Final = "/api/v1/oncall-schedules/{scheduleID}"


async def schedules_json(tx: Tx, org: int, rows: Sequence[ScheduleRow]) -> list[OnCallSchedule]:
    keys = [row.id for row in rows]
    people, layers = await select_participants(tx, org, keys), await select_layers(tx, org, keys)
    return [_schedule_json(row, layers[row.id], people[row.id]) for row in rows]


def _schedule_json(
    row: ScheduleRow, layers: Sequence[LayerRow], people: Sequence[ParticipantRow]
) -> OnCallSchedule:
    further = [
        OnCallLayer(name=layer.name, **_layer_json(layer, place, people))
        for place, layer in enumerate(layers, 1)
    ]
    return OnCallSchedule(
        id=row.uid,
        project_id=row.project_uid,
        name=row.name,
        layers=known(further or None),
        hand_off_email=known(row.hand_off_email or None),
        managed_by=known(row.managed_by or None),
        created_at=to_text(row.created_at),
        updated_at=to_text(row.updated_at),
        **_layer_json(row, 0, people),
    )


def _layer_json(
    layer: ScheduleRow | LayerRow, place: int, people: Sequence[ParticipantRow]
) -> dict[str, Any]:
    return {
        "shift_seconds": layer.shift_seconds,
        "anchor_at": to_text(layer.anchor_at),
        "timezone": known(layer.timezone or None),
        "participants": [str(person.uid) for person in people if person.layer == place],
        "restrictions": known([window_json(text) for text in layer.restrictions] or None),
        "starts_at": instant_text(layer.starts_at),
        "ends_at": instant_text(layer.ends_at),
    }


def _override_json(row: OnCallOverrideRow) -> OnCallOverride:
    return OnCallOverride(
        id=row.uid,
        schedule_id=row.schedule_uid,
        channel_id=row.channel_uid,
        starts_at=to_text(row.starts_at),
        ends_at=to_text(row.ends_at),
        created_at=to_text(row.created_at),
    )


def _draft(body: CreateOnCallSchedule) -> ScheduleDraft:
    layers = [
        LayerDraft(layer.name, **_layer_draft(layer, f"layers[{place}]."))
        for place, layer in enumerate(body.layers)
    ]
    return ScheduleDraft(
        body.name,
        layers=layers,
        hand_off_email=body.hand_off_email,
        **_layer_draft(body, ""),
    )


def _layer_draft(body: CreateOnCallSchedule | CreateOnCallLayer, prefix: str) -> dict[str, Any]:
    return {
        "shift_seconds": body.shift_seconds,
        "anchor_at": instant_given(f"{prefix}anchor_at", body.anchor_at),
        "participants": body.participants,
        "timezone": body.timezone,
        "windows": tuple(
            window_given(f"{prefix}restrictions[{place}]", window)
            for place, window in enumerate(body.restrictions)
        ),
        "starts_at": instant_if_given(f"{prefix}starts_at", body.starts_at),
        "ends_at": instant_if_given(f"{prefix}ends_at", body.ends_at),
    }


async def list_schedules(ask: Request) -> list[OnCallSchedule]:
    async with ask.context.pool.transaction("list_schedules", read_only=True) as tx:
        rows = await select_schedules_of(tx, org_of(ask), project_of(ask))
        return await schedules_json(tx, org_of(ask), rows)


async def create(ask: Request) -> OnCallSchedule:
    async with ask.context.pool.transaction("create_schedule") as tx:
        row = await create_schedule(tx, ask.who, ask.ids["projectID"], _draft(ask.body))
        (shape,) = await schedules_json(tx, row.org, [row])
    return shape


async def replace(ask: Request) -> OnCallSchedule:
    async with ask.context.pool.transaction("replace_schedule") as tx:
        row = await replace_schedule(tx, ask.who, ask.ids["scheduleID"], _draft(ask.body))
        (shape,) = await schedules_json(tx, row.org, [row])
    return shape


async def delete(ask: Request) -> None:
    async with ask.context.pool.transaction("delete_schedule") as tx:
        await delete_schedule(tx, ask.who, ask.ids["scheduleID"])


async def _found(tx: Tx, schedule: UUID) -> ScheduleRow:
    row = await select_schedule(tx, schedule)
    if row is None:
        raise Problem("not_found")
    return row


async def list_overrides(ask: Request) -> list[OnCallOverride]:
    async with ask.context.pool.transaction("list_overrides", read_only=True) as tx:
        schedule = await _found(tx, ask.ids["scheduleID"])
        rows = await select_overrides_of(tx, schedule.org, schedule.id)
    return [_override_json(row) for row in rows]


async def override(ask: Request) -> OnCallOverride:
    body = ask.body
    starts_at, ends_at = (
        instant_given("starts_at", body.starts_at),
        instant_given("ends_at", body.ends_at),
    )
    async with ask.context.pool.transaction("create_override") as tx:
        row = await create_override(
            tx, ask.who, ask.ids["scheduleID"], body.channel_id, starts_at, ends_at
        )
    return _override_json(row)


async def end_override(ask: Request) -> None:
    async with ask.context.pool.transaction("delete_override") as tx:
        await delete_override(tx, ask.who, ask.ids["overrideID"])


async def new_calendar_token(ask: Request) -> CalendarToken:
    token = token_from(TokenKind.CALENDAR, os.urandom(RANDOM_BYTES))
    async with ask.context.pool.transaction("renew_calendar_token") as tx:
        row = await renew_calendar_token(tx, ask.who, ask.ids["scheduleID"], digest(token))
    return CalendarToken(token=token, url=calendar_url(ask, row.uid, token))


def calendar_url(ask: Request, schedule: UUID, token: str) -> str:
    """Returns the URL of the calendar, with its token."""
    return f"{ask.base_url}/api/v1/oncall-schedules/{schedule}/calendar.ics?token={token}"


_VIEW: Final = Permission(Need.VIEWER)
_PROJECT: Final = ("project", "projectID")
_SCHEDULE: Final = ("schedule", "scheduleID")

_all: Final = partial(Route, path=_ALL, scope=_PROJECT, tag="oncall")
_one: Final = partial(Route, path=_ONE, scope=_SCHEDULE, tag="oncall")

ROUTES: Final = (
    _all(
        method="GET",
        action=_VIEW,
        handler=list_schedules,
        summary="The project's on-call schedules.",
        answer=list[OnCallSchedule],
    ),
    _all(
        method="POST",
        action=EDIT,
        handler=create,
        summary="Create an on-call schedule.",
        body=CreateOnCallSchedule,
        answer=OnCallSchedule,
        status=201,
        also=(409,),
    ),
    _one(
        method="PUT",
        action=EDIT,
        handler=replace,
        summary="Replace an on-call schedule; its overrides and its calendar's token stay.",
        body=CreateOnCallSchedule,
        answer=OnCallSchedule,
        also=(409,),
    ),
    _one(
        method="DELETE",
        action=EDIT,
        handler=delete,
        summary="Delete an on-call schedule that no escalation policy or service uses.",
        status=204,
        also=(409,),
    ),
    Route(
        method="GET",
        path=f"{_ONE}/overrides",
        action=_VIEW,
        scope=_SCHEDULE,
        handler=list_overrides,
        summary="The schedule's overrides, in order of their start.",
        tag="oncall",
        answer=list[OnCallOverride],
    ),
    Route(
        method="POST",
        path=f"{_ONE}/overrides",
        action=EDIT,
        scope=_SCHEDULE,
        handler=override,
        summary="Create an on-call override; the newest override wins.",
        tag="oncall",
        body=CreateOnCallOverride,
        answer=OnCallOverride,
        status=201,
        also=(409,),
    ),
    Route(
        method="DELETE",
        path="/api/v1/oncall-overrides/{overrideID}",
        action=EDIT,
        scope=("override", "overrideID"),
        handler=end_override,
        summary="Delete an on-call override.",
        tag="oncall",
        status=204,
    ),
    Route(
        method="POST",
        path=f"{_ONE}/calendar-token",
        action=EDIT,
        scope=_SCHEDULE,
        handler=new_calendar_token,
        summary="Renew the calendar token, returned once; the old one becomes invalid.",
        tag="oncall",
        answer=CalendarToken,
        status=201,
    ),
)
