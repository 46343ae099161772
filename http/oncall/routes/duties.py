"""Routes of who is on call: at an instant, in a range, as calendar and as badge."""

from functools import partial
from typing import Any, Final
from uuid import UUID

from ....storage.accounts.rules.access import Need, Permission
from ....storage.core.instant import DAY, EARLIEST, LATEST, Instant, to_text
from ....storage.core.token import TokenKind, digest, kind_of
from ....storage.engine.paced import paced
from ....storage.engine.pools import Tx
from ....storage.oncall.queries.oncall_schedules import (
    NOBODY,
    ScheduleRoster,
    select_rosters,
    select_schedule,
    select_schedule_by_token,
    select_schedules_of,
)
from ....storage.oncall.rows import ScheduleRow
from ....storage.oncall.rules.oncall_schedule import (
    EARLIEST_YEAR,
    LATEST_YEAR,
    Duty,
    duties,
    is_computed,
    stretch,
)
from ...ui.plots.badge import badge
from ...wire.errors import Problem
from ...wire.route import Request, Response, Route
from ...wire.schema import known
from ...wire.scope_keys import org_of, project_of
from ...wire.time_params import instant_if_given, range_given
from ..schemas import (
    CalendarQuery,
    OnCallNow,
    OnCallNowQuery,
    OnCallOfSchedule,
    OnCallShift,
    OnCallShiftsQuery,
)
from .icalendar import calendar_of

SHIFTS_LONGEST_US: Final = 92 * DAY
_ONE: Final = "/api/v1/oncall-schedules/{scheduleID}"
_CALENDAR: Final = "text/calendar; charset=utf-8"
# The referrer would reveal the calendar token to a linked site.
_TOKEN_HEADERS: Final = {
    "Cache-Control": "private, max-age=300",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_CALENDAR_HEADERS: Final = {
    **_TOKEN_HEADERS,
    "Content-Disposition": 'inline; filename="on-call.ics"',
}
_BADGE_HEADERS: Final = {**_TOKEN_HEADERS, "Cache-Control": "private, max-age=60"}


async def current(ask: Request) -> OnCallNow:
    async with ask.context.pool.transaction("read_oncall", read_only=True) as tx:
        row = await _found(tx, ask.ids["scheduleID"])
        at = _instant(ask, tx.now)
        (standing,) = await select_rosters(tx, row.org, [row], EARLIEST, LATEST)
    return OnCallNow(**_now_json(standing, at))


async def on_call_of_project(ask: Request) -> list[OnCallOfSchedule]:
    org = org_of(ask)
    async with ask.context.pool.transaction("read_oncall_of_project", read_only=True) as tx:
        rows = await select_schedules_of(tx, org, project_of(ask))
        at = _instant(ask, tx.now)
        standings = await select_rosters(tx, org, rows, EARLIEST, LATEST)
    return await paced(
        OnCallOfSchedule(schedule_name=one.schedule.name, **_now_json(one, at)) for one in standings
    )


async def shifts(ask: Request) -> list[OnCallShift]:
    within = range_given(ask.query.from_, ask.query.to, SHIFTS_LONGEST_US)
    if not (is_computed(within.from_) and is_computed(within.until)):
        raise Problem("range_invalid")
    async with ask.context.pool.transaction("read_oncall_shifts", read_only=True) as tx:
        row = await _found(tx, ask.ids["scheduleID"])
        (standing,) = await select_rosters(tx, row.org, [row], within.from_, within.until)
    walk = duties(standing.roster, standing.overrides, within.from_, within.until)
    return await paced(
        OnCallShift(
            from_=to_text(duty.from_at),
            to=to_text(duty.until),
            layer=known(duty.layer),
            **_who_json(standing, duty),
        )
        for duty in walk
    )


def _instant(ask: Request, now: Instant) -> Instant:
    """Returns the instant of the query, by default now."""
    at = instant_if_given("at", ask.query.at)
    if at is not None and not is_computed(at):
        raise Problem(f"at: must lie in the years {EARLIEST_YEAR} to {LATEST_YEAR - 1}")
    return now if at is None else at


def _now_json(standing: ScheduleRoster, at: Instant) -> dict[str, Any]:
    duty = stretch(standing.roster, standing.overrides, at)
    until = None if duty.until == LATEST else to_text(duty.until)
    return {
        "schedule_id": standing.schedule.uid,
        "until": known(until),
        **_who_json(standing, duty),
    }


def _who_json(standing: ScheduleRoster, duty: Duty) -> dict[str, Any]:
    if duty.channel is None:
        return {}
    uids = {row.channel: row.channel_uid for row in standing.override_rows}
    uids |= {person.channel: person.uid for person in standing.participants}
    override = None if duty.override is None else duty.override.number
    overrides = (row.uid for row in standing.override_rows if row.id == override)
    return {
        "channel_id": uids[duty.channel],
        "channel_name": standing.name_of(duty.channel),
        "override_id": known(next(overrides, None)),
    }


async def _found(tx: Tx, schedule: UUID) -> ScheduleRow:
    row = await select_schedule(tx, schedule)
    if row is None:
        raise Problem("not_found")
    return row


async def _opened(ask: Request, tx: Tx) -> ScheduleRow:
    """Returns the schedule for a viewer, or for a client with the token of the schedule.

    A token that is wrong, renewed, or of another schedule is answered with `not_found`.
    """
    schedule = ask.ids["scheduleID"]
    if ask.principal is not None:
        return await _found(tx, schedule)
    token = ask.query.token or ""
    if kind_of(token) is not TokenKind.CALENDAR:
        raise Problem("not_found")
    opened = await select_schedule_by_token(tx, schedule, digest(token))
    if opened is None:
        raise Problem("not_found")
    return opened


async def calendar(ask: Request) -> Response:
    async with ask.context.pool.transaction("oncall_calendar", read_only=True) as tx:
        row = await _opened(ask, tx)
        (standing,) = await select_rosters(tx, row.org, [row], EARLIEST, LATEST)
        now = tx.now
    return Response(
        body=await calendar_of(standing, now), headers=_CALENDAR_HEADERS, content_type=_CALENDAR
    )


async def on_call_badge(ask: Request) -> Response:
    async with ask.context.pool.transaction("oncall_badge", read_only=True) as tx:
        row = await _opened(ask, tx)
        (standing,) = await select_rosters(tx, row.org, [row], EARLIEST, LATEST)
        now = tx.now
    duty = stretch(standing.roster, standing.overrides, now)
    said = NOBODY.lower() if duty.is_gap else standing.name_of(duty.channel)
    return Response(
        body=badge(f"on call: {row.name}", said, "down" if duty.is_gap else "up").encode(),
        headers=_BADGE_HEADERS,
        content_type="image/svg+xml",
    )


_VIEW: Final = Permission(Need.VIEWER)
_one: Final = partial(
    Route, method="GET", action=_VIEW, scope=("schedule", "scheduleID"), tag="oncall"
)

ROUTES: Final = (
    Route(
        method="GET",
        path="/api/v1/projects/{projectID}/oncall",
        action=_VIEW,
        scope=("project", "projectID"),
        handler=on_call_of_project,
        summary="Who is on call by each schedule of the project, now or at an instant.",
        tag="oncall",
        query=OnCallNowQuery,
        answer=list[OnCallOfSchedule],
    ),
    _one(
        path=f"{_ONE}/current",
        handler=current,
        summary="Read the on-call channel with its end and override, now or at an instant.",
        query=OnCallNowQuery,
        answer=OnCallNow,
    ),
    _one(
        path=f"{_ONE}/shifts",
        handler=shifts,
        summary="Shifts, overrides and gaps of at most 92 days, in order and without holes.",
        query=OnCallShiftsQuery,
        answer=list[OnCallShift],
    ),
    _one(
        path=f"{_ONE}/calendar.ics",
        handler=calendar,
        summary="The schedule as an iCalendar document, for viewers and for its own token.",
        query=CalendarQuery,
        answer=str,
        content_type="text/calendar",
        token_opens=True,
    ),
    _one(
        path=f"{_ONE}/badge.svg",
        handler=on_call_badge,
        summary="A badge with who is on call, for viewers and for the token of the calendar.",
        query=CalendarQuery,
        answer=str,
        content_type="image/svg+xml",
        token_opens=True,
    ),
)
