"""Maintenance screen: current and planned maintenance, as a plot and a list, and the form.

If a maintenance begins before now, its effect is previewed before it is announced.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

import msgspec

from ....storage.accounts.queries.object_marks import select_marks
from ....storage.accounts.rules.access import Need, Permission
from ....storage.accounts.transactions.object_marks import SERIES
from ....storage.core.instant import MINUTE, Instant, from_text
from ....storage.core.refusal import Refused
from ....storage.engine.pools import Tx
from ....storage.maintenance.queries.maintenance_series import select_series_of
from ....storage.maintenance.queries.maintenances import select_maintenance, select_maintenances_of
from ....storage.maintenance.rows import MaintenanceRow
from ....storage.maintenance.transactions.extend_series import begin_series, end_series
from ....storage.maintenance.transactions.plan_maintenance import (
    EDIT,
    TO_COME_MOST,
    MaintenancePreview,
    Plan,
    announce,
    annul,
    end,
    preview_announcement,
    preview_annulment,
)
from ....storage.monitors.queries.console_monitors import select_names_of
from ....storage.scheduling.rules.maintenance_window import (
    AHEAD_MOST_US,
    LONGEST_US,
    REASON_LONGEST,
)
from ....storage.services.queries.pickable_objects import PickableKind
from ...ui.data_table import exact
from ...ui.form_routes import page_route
from ...ui.form_values import stripped
from ...ui.formatting import clock, number, setting
from ...ui.pickers.objects import named, options_of
from ...ui.render import page, redirect
from ...ui.shell.page_layout import PageLayout, frame_of
from ...ui.shown_time import zone_shown, zone_word
from ...ui.time_inputs import instant_typed
from ...wire.errors import Problem
from ...wire.route import Request, Response
from ...wire.scope_keys import org_of, project_of
from ..routes.maintenance import LISTED_MOST
from .maintenance_list import groups, summary
from .maintenance_weeks import drawn, name_of
from .preview_table import service_lines
from .series_panel import CHOICES, is_there, series_lines, series_plan
from .tagged_maintenance import begin_tagged

_LABELS: Final = {
    "starts_at": "Start",
    "ends_at": "End",
    "reason": "Reason",
    "monitor_id": "Monitor",
    "tags": "Tags",
    "public_title": "Public title",
    "timezone": "Time zone",
    "duration_seconds": "End",
    "rrule": "Repeats",
}
_SAID: Final = {
    "maintenance_quota": f"Limit: {number(TO_COME_MOST)} active and upcoming maintenances per"
    " project.",
    "preview_stale": "The preview expired. Preview again.",
    "preview_required": "Already over: annul it with a preview.",
}


# The form field of a field of the API.
_FIELDS: Final = {
    "starts_at": "starts",
    "ends_at": "ends",
    "reason": "reason",
    "monitor_id": "monitor",
    "tags": "tags",
    "public_title": "title",
    "timezone": "zone",
    "duration_seconds": "ends",
    "rrule": "again",
}


class MaintenanceQuery(msgspec.Struct, frozen=True):
    """`show` is `plan` for the form. The default is the list."""

    show: str = ""


@dataclass(frozen=True, slots=True)
class MaintenanceInput:
    """Values of the form with their fault. The defaults are the empty form."""

    monitor: str = ""
    starts: str = ""
    ends: str = ""
    reason: str = ""
    again: str = ""
    zone: str = ""
    tags: str = ""
    title: str = ""
    field: str = ""
    fault: str = ""

    @property
    def anchor(self) -> str:
        """Returns the id of the form field with the fault, empty if there is none."""
        return _FIELDS.get(self.field, "")


async def render_maintenance(ask: Request) -> Response:
    if ask.query.show == "plan":
        return await _plan_form(ask, MaintenanceInput())
    return await _render(ask, MaintenanceInput())


async def submit_maintenance(ask: Request) -> Response:
    typed = MaintenanceInput(
        *(
            stripped(ask, name)
            for name in ("monitor", "starts", "ends", "reason", "again", "zone", "tags", "title")
        )
    )
    try:
        done = await _apply(ask, stripped(ask, "act"), await _resolved(ask, typed))
    except Refused as refused:
        if refused.code in ("forbidden", "not_found"):
            raise
        label = _LABELS.get(refused.field, "")
        stated = f"{label}: {refused.message}." if label else f"Not begun: {refused.message}."
        said = _SAID.get(refused.code) or stated
        for name, word in _LABELS.items():
            said = said.replace(name, word)
        wrong = replace(typed, field=refused.field, fault=said)
        planning = stripped(ask, "act") in ("plan", "confirm")
        return await (_plan_form if planning else _render)(ask, wrong)
    return done or redirect(f"/projects/{ask.ids['projectID']}/maintenance")


async def _resolved(ask: Request, typed: MaintenanceInput) -> MaintenanceInput:
    """Returns the input with the uid of the monitor instead of its name. Refused invalid."""
    if not typed.monitor or _uuid(typed.monitor) is not None:
        return typed
    org, project = org_of(ask), project_of(ask)
    async with ask.context.pool.transaction("console_pick", read_only=True) as tx:
        found = await named(tx, org, project, PickableKind.MONITOR, typed.monitor, "monitor_id")
    assert found is not None, "the text is not empty"
    return replace(typed, monitor=str(found.uid))


async def _apply(ask: Request, what: str, typed: MaintenanceInput) -> Response | None:
    match what:
        case "plan" if typed.tags:
            async with ask.context.pool.transaction("console_begin_tagged") as tx:
                plan = _plan_of(typed, tx.now)
                uid = await begin_tagged(ask, tx, plan, typed.tags, typed.again)
            return redirect(f"/projects/{ask.ids['projectID']}/monitors/actions/{uid}")
        case "plan" if typed.again and typed.title:
            raise Refused("invalid", "public_title", "cannot be combined with Repeats")
        case "plan" if typed.again:
            await _repeat(ask, typed)
            return None
        case "plan" | "confirm":
            return await _plan(ask, typed)
        case "end-series":
            series = await _series_named(ask)
            async with ask.context.pool.transaction("console_end_series") as tx:
                await end_series(tx, ask.who, series)
            return None
        case "end":
            row = await _names_by_id(ask)
            async with ask.context.pool.transaction("console_end_maintenance") as tx:
                await end(tx, ask.who, row.uid)
            return None
        case "annul":
            return await _annul(ask)
        case _:
            raise Problem("Unknown action")


async def _plan(ask: Request, typed: MaintenanceInput) -> Response | None:
    """Announces the maintenance. A start before now requires a confirmed preview."""
    days, project = ask.context.options.heartbeat_days, ask.ids["projectID"]
    preview = _uuid(stripped(ask, "preview"))
    async with ask.context.pool.transaction("console_announce_maintenance") as tx:
        plan = _plan_of(typed, tx.now)
        if await _is_there(ask, tx, plan):
            return None
        if plan.starts_at >= tx.now or preview is not None:
            await announce(tx, ask.who, project, plan, preview, days)
            return None
        made = await preview_announcement(tx, ask.who, project, plan, days)
        frame = await frame_of(ask, tx)
        names = await select_names_of(tx, org_of(ask), [plan.monitor] if plan.monitor else [])
    name = "The whole project" if plan.monitor is None else names.get(plan.monitor, "A monitor")
    hidden = {
        "act": "confirm",
        "monitor": typed.monitor,
        "starts": typed.starts,
        "ends": typed.ends,
        "reason": typed.reason,
        "title": typed.title,
    }
    span = f"{exact(plan.starts_at)} to {exact(plan.ends_at)}, {zone_word()}"
    return _confirm(frame, made, hidden, f"{name}, {span}", annuls=False)


async def _annul(ask: Request) -> Response | None:
    days, row = ask.context.options.heartbeat_days, await _names_by_id(ask)
    preview = _uuid(stripped(ask, "preview"))
    async with ask.context.pool.transaction("console_annul_maintenance") as tx:
        if row.starts_at >= tx.now or preview is not None:
            await annul(tx, ask.who, row.uid, preview, days)
            return None
        made = await preview_annulment(tx, ask.who, ask.ids["projectID"], row.uid, days)
        frame = await frame_of(ask, tx)
        names = await select_names_of(tx, row.org, [row.monitor_uid] if row.monitor_uid else [])
    hidden = {"act": "annul", "maintenance": str(row.uid)}
    span = f"{exact(row.starts_at)} to {exact(row.over_at)}, {zone_word()}"
    return _confirm(frame, made, hidden, f"{name_of(row, names)}, {span}", annuls=True)


def _confirm(
    frame: PageLayout,
    made: MaintenancePreview,
    hidden: Mapping[str, str],
    what: str,
    *,
    annuls: bool,
) -> Response:
    lines = service_lines(made.services)
    return page(
        "maintenance/console/preview_table.html",
        frame=frame,
        annuls=annuls,
        what=what,
        hidden={**hidden, "preview": str(made.uid)},
        services=lines,
        changed=sum(line.changes for line in lines),
        until=clock(made.expires_at),
    )


async def _repeat(ask: Request, typed: MaintenanceInput) -> None:
    async with ask.context.pool.transaction("console_begin_series") as tx:
        plan = series_plan(_plan_of(typed, tx.now), typed.again, typed.zone, tx.now)
        if not is_there(await select_series_of(tx, org_of(ask), project_of(ask)), plan):
            await begin_series(tx, ask.who, ask.ids["projectID"], plan)


async def _series_named(ask: Request) -> UUID:
    """Returns the named series, which must belong to the project."""
    uid = _uuid(stripped(ask, "series"))
    async with ask.context.pool.transaction("console_series_named", read_only=True) as tx:
        rows = await select_series_of(tx, org_of(ask), project_of(ask))
    if uid is None or uid not in {row.uid for row in rows}:
        raise Problem("not_found")
    return uid


def _plan_of(typed: MaintenanceInput, now: Instant) -> Plan:
    """Reads the form. Without a start, the maintenance begins now."""
    monitor = _uuid(typed.monitor) if typed.monitor else None
    if typed.monitor and monitor is None:
        raise Problem("Unknown action")
    return Plan(
        monitor=monitor,
        starts_at=_instant("starts_at", typed.starts) if typed.starts else now,
        ends_at=_instant("ends_at", typed.ends),
        reason=typed.reason,
        public_title=typed.title,
    )


def _instant(field: str, text: str) -> Instant:
    return from_text(instant_typed(field, text, zone_shown()))


async def _is_there(ask: Request, tx: Tx, plan: Plan) -> bool:
    """Returns whether the same maintenance exists, so that a second click has no effect.

    A maintenance that begins now equals one that began up to a minute ago.
    """
    rows = await select_maintenances_of(tx, org_of(ask), project_of(ask), LISTED_MOST)
    moment_us = MINUTE if plan.starts_at == tx.now else 0
    return any(
        (row.monitor_uid, row.ends_at, row.reason) == (plan.monitor, plan.ends_at, plan.reason)
        and 0 <= plan.starts_at - row.starts_at <= moment_us
        and row.cancel_effective_at is None
        for row in rows
    )


async def _names_by_id(ask: Request) -> MaintenanceRow:
    """Returns the named maintenance, which must belong to the project."""
    uid = _uuid(stripped(ask, "maintenance"))
    if uid is None:
        raise Problem("not_found")
    async with ask.context.pool.transaction("console_maintenance_named", read_only=True) as tx:
        row = await select_maintenance(tx, uid)
    if row is None or (row.org, row.project) != (org_of(ask), project_of(ask)):
        raise Problem("not_found")
    return row


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


async def _render(ask: Request, typed: MaintenanceInput) -> Response:
    org, project = org_of(ask), project_of(ask)
    async with ask.context.pool.transaction("console_maintenance", read_only=True) as tx:
        frame = await frame_of(ask, tx)
        rows = await select_maintenances_of(tx, org, project, LISTED_MOST)
        series = await select_series_of(tx, org, project)
        marks = await select_marks(tx, org, project, SERIES)
        uids = {one.monitor_uid for one in (*rows, *series) if one.monitor_uid is not None}
        names = await select_names_of(tx, org, uids)
        now = tx.now
    return page(
        "maintenance/console/maintenance_screen.html",
        status=400 if typed.fault else 200,
        frame=frame,
        first=summary(rows, names, now),
        drawn=drawn(rows, names, now),
        groups=groups(rows, names, now),
        series=series_lines(series, names, marks),
        typed=typed,
    )


async def _plan_form(ask: Request, typed: MaintenanceInput) -> Response:
    """Renders the form. Without the right to submit it, the list."""
    org, project = org_of(ask), project_of(ask)
    async with ask.context.pool.transaction("console_maintenance_form", read_only=True) as tx:
        frame = await frame_of(ask, tx)
        monitors = await options_of(tx, org, project, PickableKind.MONITOR, typed.monitor)
    if not frame.may_write:
        return await _render(ask, typed)
    return page(
        "maintenance/console/plan_form.html",
        status=400 if typed.fault else 200,
        frame=frame,
        choices=list(CHOICES.items()),
        monitors=monitors,
        typed=typed,
        reason_longest=REASON_LONGEST,
        longest=setting(LONGEST_US // 1_000_000),
        ahead=setting(AHEAD_MOST_US // 1_000_000),
    )


_PROJECT: Final = ("project", "projectID")
_PATH: Final = "/projects/{projectID}/maintenance"

ROUTES: Final = (
    page_route(
        method="GET",
        path=_PATH,
        action=Permission(Need.VIEWER),
        scope=_PROJECT,
        handler=render_maintenance,
        summary="Maintenance of a project.",
        query=MaintenanceQuery,
    ),
    page_route(
        method="POST",
        path=_PATH,
        action=EDIT,
        scope=_PROJECT,
        handler=submit_maintenance,
        summary="Schedule, end or annul maintenance.",
    ),
)
