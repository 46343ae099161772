"""Routes of on-call schedules: schedules, overrides, current on-call and calendar."""

import os
from collections.abc import Sequence
from functools import partial
from typing import Final
from uuid import UUID

from ....storage.accounts.rules.access import Need, Permission
from ....storage.core.instant import EARLIEST, LATEST, to_text
from ....storage.core.token import RANDOM_BYTES, TokenKind, digest, kind_of, token_from
from ....storage.engine.pools import Tx
from ....storage.oncall.queries.oncall_overrides import select_overrides_of
from ....storage.oncall.queries.oncall_schedules import (
    ScheduleRoster,
    select_participants,
    select_rosters,
    select_schedule,
    select_schedule_by_token,
    select_schedules_of,
)
from ....storage.oncall.rows import OnCallOverrideRow, ScheduleRow
from ....storage.oncall.rules.oncall_schedule import stretch
from ....storage.oncall.transactions.edit_overrides import create_override, delete_override
from ....storage.oncall.transactions.edit_schedules import (
    EDIT,
    ScheduleDraft,
    create_schedule,
    delete_schedule,
    renew_calendar_token,
    replace_schedule,
)
from ...wire.errors import Problem
from ...wire.route import Request, Response, Route
from ...wire.schema import known
from ...wire.scope_keys import org_of, project_of
from ...wire.time_params import instant_given
from ..schemas import (
    CalendarQuery,
    CalendarToken,
    CreateOnCallOverride,
    CreateOnCallSchedule,
    OnCallNow,
    OnCallOverride,
    OnCallSchedule,
)
from .icalendar import calendar_of

_ALL: Final = "/api/v1/projects/{projectID}/oncall-schedules"
_ONE: Final = "/api/v1/oncall-schedules/{scheduleID}"
_CALENDAR: Final = "text/calendar; charset=utf-8"
# The referrer would reveal the calendar token to a linked site.
_CALENDAR_HEADERS: Final = {
    "Cache-Control": "private, max-age=300",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Content-Disposition": 'inline; filename="on-call.ics"',
}


async def schedules_json(tx: Tx, org: int, rows: Sequence[ScheduleRow]) -> list[OnCallSchedule]:
    people = await select_participants(tx, org, [row.id for row in rows])
    return [
        OnCallSchedule(
            id=row.uid,
            project_id=row.project_uid,
            name=row.name,
            shift_seconds=row.shift_seconds,
            anchor_at=to_text(row.anchor_at),
            timezone=known(row.timezone or None),
            participants=[str(person.uid) for person in people[row.id]],
            created_at=to_text(row.created_at),
            updated_at=to_text(row.updated_at),
        )
        for row in rows
    ]


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
    return ScheduleDraft(
        body.name,
        body.shift_seconds,
        instant_given("anchor_at", body.anchor_at),
        body.participants,
        body.timezone,
    )


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


async def current(ask: Request) -> OnCallNow:
    async with ask.context.pool.transaction("read_oncall", read_only=True) as tx:
        row = await _found(tx, ask.ids["scheduleID"])
        (standing,) = await select_rosters(tx, row.org, [row], tx.now, LATEST)
        now = tx.now
    duty = stretch(standing.roster, standing.overrides, now)
    override = duty.override.number if duty.override else None
    return OnCallNow(
        schedule_id=row.uid,
        channel_id=_uid_of(standing, duty.channel),
        channel_name=standing.name_of(duty.channel),
        until=to_text(duty.until),
        override_id=known(
            next((row.uid for row in standing.override_rows if row.id == override), None)
        ),
    )


def _uid_of(standing: ScheduleRoster, channel: int) -> UUID:
    uids = {row.channel: row.channel_uid for row in standing.override_rows}
    uids |= {person.channel: person.uid for person in standing.participants}
    return uids[channel]


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


async def calendar(ask: Request) -> Response:
    """Returns the calendar to a viewer, or to a client with the schedule's token.

    A token that is wrong, renewed, or of another schedule is answered with `not_found`.
    """
    schedule = ask.ids["scheduleID"]
    async with ask.context.pool.transaction("oncall_calendar", read_only=True) as tx:
        if ask.principal is not None:
            row = await _found(tx, schedule)
        else:
            token = ask.query.token or ""
            if kind_of(token) is not TokenKind.CALENDAR:
                raise Problem("not_found")
            opened = await select_schedule_by_token(tx, schedule, digest(token))
            if opened is None:
                raise Problem("not_found")
            row = opened
        (standing,) = await select_rosters(tx, row.org, [row], EARLIEST, LATEST)
        now = tx.now
    return Response(
        body=await calendar_of(standing, now), headers=_CALENDAR_HEADERS, content_type=_CALENDAR
    )


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
        path=f"{_ONE}/current",
        action=_VIEW,
        scope=_SCHEDULE,
        handler=current,
        summary="Read the current on-call channel with its end and override.",
        tag="oncall",
        answer=OnCallNow,
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
        method="GET",
        path=f"{_ONE}/calendar.ics",
        action=_VIEW,
        scope=_SCHEDULE,
        handler=calendar,
        summary="The schedule as an iCalendar document, for viewers and for its own token.",
        tag="oncall",
        query=CalendarQuery,
        answer=str,
        content_type="text/calendar",
        token_opens=True,
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
