"""On-call screen: who is on call until when, schedules, and escalation policies."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

import msgspec

from ....storage.accounts.rules.access import Need, Permission
from ....storage.core.instant import EARLIEST, LATEST, Instant
from ....storage.core.refusal import Refused
from ....storage.notifications.queries.channel_health import select_reach
from ....storage.notifications.queries.channels import select_channels_of
from ....storage.notifications.rows import ChannelRow
from ....storage.oncall.queries.cover_requests import select_cover_request, select_cover_requests
from ....storage.oncall.queries.escalation_policies import (
    select_default_policy_uid,
    select_policies_of,
    select_targets,
)
from ....storage.oncall.queries.oncall_overrides import select_override
from ....storage.oncall.queries.oncall_schedules import (
    ScheduleRoster,
    select_rosters,
    select_schedules_of,
)
from ....storage.oncall.rows import (
    CoverRequestRow,
    EscalationPolicyRow,
    EscalationTargetRow,
    ScheduleRow,
)
from ....storage.oncall.rules.escalation import TargetKind
from ....storage.oncall.rules.oncall_schedule import stretch
from ....storage.oncall.transactions.cover_duties import ACCEPT
from ....storage.oncall.transactions.edit_overrides import COMING_MOST
from ....storage.oncall.transactions.edit_schedules import EDIT
from ....storage.services.queries.pickable_objects import PickableKind
from ...ui.bundle_notice import MANAGED_SAID, Managed, managed
from ...ui.form_routes import page_route
from ...ui.form_values import stripped, uuid_in, value_of
from ...ui.formatting import NOTHING, setting
from ...ui.pickers.objects import options_of
from ...ui.render import page, redirect
from ...ui.shell.page_layout import frame_of
from ...ui.time_inputs import instant_typed, zone_named
from ...wire.errors import Problem
from ...wire.route import Request, Response
from ...wire.scope_keys import org_of, project_of
from ..routes import cover_requests as cover_api
from ..routes import escalation_policies as policies_api
from ..routes import oncall as api
from ..schemas import CreateOnCallOverride, PutDefaultEscalationPolicy
from .channel_health_table import reach_lines
from .cover_panel import (
    COVER_FIELDS,
    COVER_LABELS,
    COVER_WORDS,
    CoverItem,
    chosen_uid,
    cover_given,
    cover_items,
)
from .oncall_weeks import drawn, gaps_ahead, plot_text, until_text, zone_of

EARLIEST_WEEK, LATEST_WEEK = -4, 48
_PICKED: Final = ("channel", "cover-who", "cover-wanted")
_TYPED: Final = (
    "from",
    "to",
    *_PICKED,
    *COVER_FIELDS.values(),
    *(f"{name}_was" for name in _PICKED),
)
_FIELDS: Final = {"starts_at": "from", "ends_at": "to", "channel_id": "channel"}
_LABELS: Final = {"starts_at": "From", "ends_at": "To", "channel_id": "Who takes over"}


class OnCallQuery(msgspec.Struct, frozen=True):
    schedule: str = ""
    weeks: str = "0"


@dataclass(frozen=True, slots=True)
class OnCallFormResult:
    text: str = ""
    is_wrong: bool = False
    # Calendar URL with its token, shown once.
    url: str = ""
    # Form field of the message, empty if it concerns no field.
    field: str = ""


@dataclass(frozen=True, slots=True)
class OnCallSummary:
    """First line: mark, sentence, and the line below it."""

    mark: str
    text: str
    under: str


@dataclass(frozen=True, slots=True)
class EscalationStepItem:
    whom: str
    when: str


@dataclass(frozen=True, slots=True)
class EscalationPolicyItem:
    uid: UUID
    name: str
    steps: list[EscalationStepItem]
    managed: Managed | None


@dataclass(frozen=True, slots=True)
class OnCallOverrideItem:
    uid: UUID
    who: str
    span: str
    is_now: bool


async def render_oncall(ask: Request) -> Response:
    return await _render(ask, ask.query.schedule, ask.query.weeks)


async def submit_acceptance(ask: Request) -> Response:
    """Accepts a cover request. The screen has a path of its own, as any role may accept."""
    try:
        await _apply(ask, "accept-cover")
    except Refused as refused:
        if refused.code in ("forbidden", "not_found"):
            raise
        said = OnCallFormResult(_words(refused, COVER_LABELS), is_wrong=True)
        return await _render(ask, stripped(ask, "schedule"), "0", said)
    path = f"/projects/{ask.ids['projectID']}/on-call"
    return redirect(f"{path}?schedule={stripped(ask, 'schedule')}")


async def submit_oncall(ask: Request) -> Response:
    """Calls the API handler of the button."""
    schedule = stripped(ask, "schedule")
    try:
        done = await _apply(ask, stripped(ask, "act"))
    except Refused as refused:
        if refused.code in ("forbidden", "not_found"):
            raise
        is_cover = stripped(ask, "act") == "cover"
        field = (COVER_FIELDS if is_cover else _FIELDS).get(refused.field, "")
        words = _words(refused, COVER_LABELS if is_cover else _LABELS)
        said = OnCallFormResult(words, is_wrong=True, field=field)
        return await _render(ask, schedule, "0", said)
    if done is not None:
        return await _render(ask, schedule, "0", done)
    return redirect(f"/projects/{ask.ids['projectID']}/on-call?schedule={schedule}")


def _words(refused: Refused, labels: Mapping[str, str]) -> str:
    if refused.code in COVER_WORDS:
        return COVER_WORDS[refused.code]
    if refused.code == "managed_by_file":
        return MANAGED_SAID
    if refused.code == "override_quota":
        return f"Limit: {COMING_MOST} active and upcoming overrides per schedule."
    rule = refused.message.replace("starts_at", "From")
    return f"{labels.get(refused.field, refused.field)}: {rule}."


async def _apply(ask: Request, what: str) -> OnCallFormResult | None:
    if what == "take-back":
        uid = uuid_in(stripped(ask, "override"))
        async with ask.context.pool.transaction("console_override", read_only=True) as tx:
            row = await select_override(tx, uid)
        if row is None or row.org != org_of(ask) or row.project != project_of(ask):
            raise Problem("not_found")
        await api.end_override(replace(ask, ids={**ask.ids, "overrideID": uid}))
        return None
    if what in ("accept-cover", "withdraw-cover"):
        uid = uuid_in(stripped(ask, "request"))
        async with ask.context.pool.transaction("console_cover", read_only=True) as tx:
            request = await select_cover_request(tx, uid)
        if request is None or (request.org, request.project) != (org_of(ask), project_of(ask)):
            raise Problem("not_found")
        named = replace(ask, ids={**ask.ids, "requestID": uid})
        await (cover_api.accept if what == "accept-cover" else cover_api.withdraw)(named)
        return None
    if what == "default-policy":
        chosen = stripped(ask, "policy")
        default = PutDefaultEscalationPolicy(
            escalation_policy_id=uuid_in(chosen) if chosen else None
        )
        await policies_api.put_default(replace(ask, body=default))
        return None
    schedule = await _schedule_of(ask)
    named = replace(ask, ids={**ask.ids, "scheduleID": schedule.uid})
    if what == "override":
        zone = zone_named(schedule.timezone)
        body = CreateOnCallOverride(
            channel_id=await _taking_over(ask),
            starts_at=instant_typed("starts_at", stripped(ask, "from"), zone),
            ends_at=instant_typed("ends_at", stripped(ask, "to"), zone),
        )
        await api.override(replace(named, body=body))
        return None
    if what == "cover":
        zone = zone_named(schedule.timezone)
        await cover_api.create(replace(named, body=await cover_given(ask, zone)))
        return None
    if what == "calendar":
        made = await api.new_calendar_token(named)
        return OnCallFormResult(
            "New calendar URL, shown once. The old URL no longer works.", url=made.url
        )
    raise Problem("Unknown action")


async def _taking_over(ask: Request) -> str:
    """Raises: Refused invalid, if the text names no member or channel."""
    uid = await chosen_uid(ask, PickableKind.PARTICIPANT, "channel", "channel_id")
    if not uid:
        raise Refused("invalid", "channel_id", "must name a member or a channel")
    return uid


async def _schedule_of(ask: Request) -> ScheduleRow:
    """Returns the schedule of the form. It must belong to the project."""
    uid = uuid_in(stripped(ask, "schedule"))
    async with ask.context.pool.transaction("console_schedule", read_only=True) as tx:
        rows = await select_schedules_of(tx, org_of(ask), project_of(ask))
    for row in rows:
        if row.uid == uid:
            return row
    raise Problem("not_found")


async def _render(
    ask: Request, chosen: str, weeks: str, said: OnCallFormResult = OnCallFormResult()
) -> Response:
    org, project = org_of(ask), project_of(ask)
    async with ask.context.pool.transaction("console_oncall", read_only=True) as tx:
        frame = await frame_of(ask, tx)
        schedules = await select_schedules_of(tx, org, project)
        channels = await select_channels_of(tx, org, project)
        options = await options_of(tx, org, project, PickableKind.PARTICIPANT)
        people = await options_of(tx, org, project, PickableKind.PERSON)
        ladders = await select_policies_of(tx, org, project)
        targets = await select_targets(tx, org, [row.id for row in ladders])
        default = await select_default_policy_uid(tx, org, project)
        reach = await select_reach(tx, org, project)
        row = next((one for one in schedules if str(one.uid) == chosen), None)
        row = row or (schedules[0] if schedules else None)
        standing = None
        if row is not None:
            (standing,) = await select_rosters(tx, org, [row], EARLIEST, LATEST)
        covers = [] if row is None else await select_cover_requests(tx, org, [row.id])
        now = tx.now
    on = _weeks(weeks)
    lines = _ladder_lines(ladders, targets)
    return page(
        "oncall/console/oncall_screen.html",
        status=400 if said.is_wrong else 200,
        frame=frame,
        said=said,
        first=_summary(standing, channels, now) if standing else None,
        schedules=schedules,
        row=row,
        managed=None if row is None else managed(row, orphan_works=True),
        zone=zone_of(standing).key if standing else "UTC",
        drawn=await drawn(standing, now, on) if standing else None,
        gaps=await gaps_ahead(standing, now) if standing else None,
        overrides=_override_lines(standing, now) if standing else [],
        covers=_covers(ask, covers, standing, now, may_write=frame.may_write),
        weeks=on,
        tabs=_tabs(on),
        options=options if frame.may_write else (),
        people=people if frame.may_write else (),
        typed={name: value_of(ask, name) for name in _TYPED},
        ladders=lines,
        default_ladder=default,
        fixed_default=_fixed(lines, default),
        reach=reach_lines(reach, now),
    )


def _covers(
    ask: Request,
    rows: list[CoverRequestRow],
    standing: ScheduleRoster | None,
    now: Instant,
    *,
    may_write: bool,
) -> list[CoverItem]:
    if standing is None:
        return []
    viewer = ask.who.user
    takes_any = may_write or any(one.uid == viewer for one in standing.participants)
    return cover_items(rows, viewer, zone_of(standing), now, takes_any=takes_any)


def _tabs(on: int) -> list[tuple[str, int, bool]]:
    """Returns (name, week offset, whether it is selected) of each tab."""
    return [
        ("Earlier", max(on - 4, EARLIEST_WEEK), False),
        ("Now", 0, on == 0),
        ("Later", min(on + 4, LATEST_WEEK), False),
    ]


def _weeks(text: str) -> int:
    try:
        return min(max(int(text[:4]), EARLIEST_WEEK), LATEST_WEEK)
    except ValueError:
        return 0


def _summary(standing: ScheduleRoster, channels: list[ChannelRow], now: Instant) -> OnCallSummary:
    duty = stretch(standing.roster, standing.overrides, now)
    zone = zone_of(standing)
    who, until = standing.name_of(duty.channel), until_text(duty, zone, now)
    follows = ""
    if duty.until != LATEST:
        after = stretch(standing.roster, standing.overrides, duty.until)
        next_ = standing.name_of(after.channel)
        follows = f"{next_} follows. " if next_ != who else f"{who} continues. "
    how = "Override active. " if duty.override else ""
    under = f"{how}{follows}Times are {zone.key}."
    if duty.is_gap:
        pages = "A step of an escalation policy that names only this schedule pages nobody."
        return OnCallSummary("down", f"{who} is on call {until}", f"{pages} {under}")
    if any(one.id == duty.channel and not one.enabled for one in channels):
        text = f"{who} is on call {until}, but the channel is disabled"
        return OnCallSummary("down", text, f"Pages to it are not sent. {under}")
    return OnCallSummary("up", f"{who} is on call, {until}", under)


def _override_lines(standing: ScheduleRoster, now: Instant) -> list[OnCallOverrideItem]:
    zone = zone_of(standing)
    return [
        OnCallOverrideItem(
            row.uid,
            row.channel_name,
            f"{plot_text(row.starts_at, zone, now)} to {plot_text(row.ends_at, zone, now)}",
            row.starts_at <= now,
        )
        for row in sorted(standing.override_rows, key=lambda one: (one.starts_at, one.id))
        if row.ends_at > now
    ]


def _ladder_lines(
    rows: list[EscalationPolicyRow], targets: list[EscalationTargetRow]
) -> list[EscalationPolicyItem]:
    return [
        EscalationPolicyItem(
            row.uid, row.name, _steps(row, targets), managed(row, orphan_works=True)
        )
        for row in rows
    ]


def _fixed(lines: list[EscalationPolicyItem], default: UUID | None) -> EscalationPolicyItem | None:
    """Returns the default policy if a bundle manages it, None if users choose the default."""
    for one in lines:
        if one.uid == default and one.managed is not None and one.managed.is_read_only:
            return one
    return None


_TARGET_WORDS: Final = {
    TargetKind.SCHEDULE: "who is on call by {}",
    TargetKind.POLICY: "the steps of {}",
}


def _steps(
    row: EscalationPolicyRow, targets: list[EscalationTargetRow]
) -> list[EscalationStepItem]:
    steps = []
    for number, after in enumerate(row.after_seconds, 1):
        named = [
            _TARGET_WORDS.get(target.kind, "{}").format(target.name)
            for target in targets
            if (target.policy, target.step) == (row.id, number)
        ]
        whom = ", ".join(named) or NOTHING
        last = number == len(row.after_seconds)
        if last and row.repeat_last:
            whom += "; then repeatedly until acknowledged"
        steps.append(
            EscalationStepItem(whom, f"after {setting(after)}" if after else "immediately")
        )
    return steps


_PROJECT: Final = ("project", "projectID")
_PATH: Final = "/projects/{projectID}/on-call"

ROUTES: Final = (
    page_route(
        method="GET",
        path=_PATH,
        action=Permission(Need.VIEWER),
        scope=_PROJECT,
        handler=render_oncall,
        summary="On-call of a project.",
        query=OnCallQuery,
    ),
    page_route(
        method="POST",
        path=_PATH,
        action=EDIT,
        scope=_PROJECT,
        handler=submit_oncall,
        summary="Edit overrides and cover requests, or regenerate the calendar URL.",
    ),
    page_route(
        method="POST",
        path=f"{_PATH}/accept",
        action=ACCEPT,
        scope=_PROJECT,
        handler=submit_acceptance,
        summary="Accept a cover request.",
    ),
)
