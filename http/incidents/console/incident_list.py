"""Incidents of a project, open ones first, and the form to open one manually."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET

from ....storage.accounts.rules.access import Need, Permission
from ....storage.core.instant import Instant
from ....storage.core.refusal import Refused
from ....storage.engine.pools import Tx
from ....storage.incidents.queries.console_incidents import (
    MONITORS_MOST,
    ListedIncident,
    Tally,
    select_open,
    select_resolved,
    select_tally,
)
from ....storage.incidents.rules.incident import (
    BODY_LONGEST,
    TITLE_LONGEST,
    IncidentImpact,
    IncidentStatus,
)
from ....storage.incidents.transactions.edit_incidents import EDIT
from ....storage.monitors.queries.console_monitors import select_names
from ...ui.form_routes import page_route
from ...ui.form_values import stripped, value_of
from ...ui.formatting import Moment, ago, count, moment, number
from ...ui.page_layout import frame_of
from ...ui.render import page, redirect
from ...wire.errors import Problem
from ...wire.route import Request, Response
from ...wire.scope_keys import org_of, project_of
from ..routes import incidents as api
from ..schemas import CreateIncident
from .duplicate_submit import opened_already
from .incident_mark import lasted, mark_of

PAGE_ROWS: Final = 50
PAGES_MOST: Final = 200


class IncidentListQuery(msgspec.Struct, frozen=True):
    show: Literal["all", "open", "resolved"] = "all"
    page: int = 1


@dataclass(frozen=True, slots=True)
class IncidentItem:
    uid: UUID
    mark: str
    title: str
    status: str
    impact: str
    started: Moment
    lasted: str
    acknowledged: str


@dataclass(frozen=True, slots=True)
class NewIncidentInput:
    """Submitted values of a refused form with the fault. The default is the empty form."""

    title: str = ""
    status: str = IncidentStatus.INVESTIGATING
    impact: str = IncidentImpact.MINOR
    monitor: str = ""
    body: str = ""
    field: str = ""
    fault: str = ""


async def render_incident_list(ask: Request) -> Response:
    return await _render(ask, ask.query, NewIncidentInput())


async def open_one(ask: Request) -> Response:
    """Opens an incident through the handler of the API."""
    typed = NewIncidentInput(
        title=stripped(ask, "title"),
        status=value_of(ask, "status"),
        impact=value_of(ask, "impact"),
        monitor=value_of(ask, "monitor"),
        body=stripped(ask, "body"),
    )
    try:
        body = CreateIncident(
            title=typed.title,
            status=IncidentStatus(typed.status),
            impact=IncidentImpact(typed.impact),
            body=typed.body,
            monitor_id=UUID(typed.monitor) if typed.monitor else UNSET,
        )
    except ValueError:
        raise Problem("Unknown action") from None
    first = await opened_already(ask, body)
    if first is not None:
        return redirect(f"/incidents/{first}")
    try:
        made = await api.create(replace(ask, body=body))
    except Refused as refused:
        if not refused.field:
            raise
        faulty = replace(typed, field=refused.field, fault=refused.message)
        return await _render(ask, IncidentListQuery(), faulty)
    return redirect(f"/incidents/{made.id}")


async def _render(ask: Request, query: IncidentListQuery, typed: NewIncidentInput) -> Response:
    org, project = org_of(ask), project_of(ask)
    at = min(max(query.page, 1), PAGES_MOST)
    async with ask.context.pool.transaction("console_incidents", read_only=True) as tx:
        frame = await frame_of(ask, tx)
        tally = await select_tally(tx, org, project)
        rows = await _select_rows(tx, org, project, query.show, tally.open, (at - 1) * PAGE_ROWS)
        monitors = await select_names(tx, org, project, MONITORS_MOST)
        now = tx.now
    return page(
        "incidents/console/incident_list.html",
        status=400 if typed.fault else 200,
        frame=frame,
        mark=mark_of(IncidentStatus.INVESTIGATING, tally.worst) if tally.open else "up",
        sentence=summary(tally),
        under=under(tally, now),
        groups=_groups(rows[:PAGE_ROWS], now),
        show=query.show,
        page=at,
        more=len(rows) > PAGE_ROWS and at < PAGES_MOST,
        typed=typed,
        monitors=monitors,
        statuses=list(IncidentStatus),
        impacts=list(IncidentImpact),
        title_longest=TITLE_LONGEST,
        body_longest=number(BODY_LONGEST),
    )


async def _select_rows(
    tx: Tx, org: int, project: int, show_: str, open_now: int, skipped: int
) -> list[ListedIncident]:
    """Returns the rows of a list page plus one: open incidents first, then newest first."""
    most = PAGE_ROWS + 1
    rows: list[ListedIncident] = []
    if show_ != "resolved":
        rows = await select_open(tx, org, project, most, skipped)
    if show_ != "open" and len(rows) < most:
        before = open_now if show_ == "all" else 0
        rest = max(skipped - before, 0)
        rows += await select_resolved(tx, org, project, most - len(rows), rest)
    return rows


def summary(tally: Tally) -> str:
    if tally.open:
        return f"{count(tally.open, 'open incident')}"
    return "No incidents yet" if tally.newest_resolved_at is None else "No open incidents"


def under(tally: Tally, now: Instant) -> str:
    if tally.open:
        if not tally.unanswered:
            return "All are acknowledged." if tally.open > 1 else "Acknowledged."
        if tally.open == 1:
            return "Not acknowledged."
        if tally.unanswered == tally.open:
            return "None is acknowledged."
        verb = "is" if tally.unanswered == 1 else "are"
        return f"{number(tally.unanswered)} {verb} not acknowledged."
    if tally.newest_resolved_at is not None:
        return f"The latest incident was resolved {ago(tally.newest_resolved_at, now).text}."
    return "Incidents are opened when a monitor goes down, by an external alert, or manually here."


def _groups(rows: Sequence[ListedIncident], now: Instant) -> list[tuple[str, list[IncidentItem]]]:
    lines = [(row.status == IncidentStatus.RESOLVED, _item(row, now)) for row in rows]
    groups = [
        ("Open", [line for over, line in lines if not over]),
        ("Resolved", [line for over, line in lines if over]),
    ]
    return [group for group in groups if group[1]]


def _item(row: ListedIncident, now: Instant) -> IncidentItem:
    return IncidentItem(
        row.uid,
        mark_of(row.status, row.impact),
        row.title,
        row.status,
        row.impact,
        moment(row.started_at, now),
        lasted(row.started_at, row.resolved_at, now),
        row.acknowledged_label if row.acknowledged_at is not None else "nobody",
    )


_PROJECT: Final = ("project", "projectID")

ROUTES: Final = (
    page_route(
        method="GET",
        path="/projects/{projectID}/incidents",
        action=Permission(Need.VIEWER),
        scope=_PROJECT,
        handler=render_incident_list,
        summary="Incidents of a project.",
        query=IncidentListQuery,
    ),
    page_route(
        method="POST",
        path="/projects/{projectID}/incidents",
        action=EDIT,
        scope=_PROJECT,
        handler=open_one,
        summary="Opens an incident.",
    ),
)
