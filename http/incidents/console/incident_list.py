"""Incidents of a project, open ones first, with a filter."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import urlencode
from uuid import UUID

import msgspec

from ....storage.accounts.rules.access import Need, Permission
from ....storage.core.instant import DAY, Instant
from ....storage.engine.pools import Tx
from ....storage.incidents.queries.console_incidents import (
    IncidentFilter,
    ListedIncident,
    Tally,
    count_open,
    median_acknowledgement,
    select_open,
    select_resolved,
    select_tally,
)
from ....storage.incidents.rules.incident import IncidentImpact, IncidentStatus
from ...ui.form_routes import page_route
from ...ui.formatting import Moment, ago, clock, count, duration, moment, number
from ...ui.render import page
from ...ui.shell.page_layout import frame_of
from ...wire.route import Request, Response
from ...wire.scope_keys import org_of, project_of
from .incident_mark import lasted, mark_of

PAGE_ROWS: Final = 50
PAGES_MOST: Final = 200
MEDIAN_DAYS: Final = 30


class IncidentListQuery(msgspec.Struct, frozen=True):
    show: Literal["all", "open", "resolved"] = "all"
    q: str = ""
    impact: Literal["", "none", "minor", "major", "critical"] = ""
    page: int = 1

    def address(self, **changed: str | int) -> str:
        """Returns the query string with changes, without the fields that have their default."""
        given = {"show": self.show, "q": self.q, "impact": self.impact, **changed}
        kept = {name: value for name, value in given.items() if value not in ("", "all")}
        return "?" + urlencode(kept) if kept else "?show=all"


@dataclass(frozen=True, slots=True)
class IncidentItem:
    uid: UUID
    number: int
    about: str
    mark: str
    title: str
    status: str
    impact: str
    started: Moment
    lasted: str
    acknowledged: str
    is_open: bool
    is_acknowledged: bool


async def render_incident_list(ask: Request) -> Response:
    org, project = org_of(ask), project_of(ask)
    query: IncidentListQuery = ask.query
    at = min(max(query.page, 1), PAGES_MOST)
    async with ask.context.pool.transaction("console_incidents", read_only=True) as tx:
        frame = await frame_of(ask, tx)
        tally = await select_tally(tx, org, project)
        since = Instant(tx.now - MEDIAN_DAYS * DAY)
        median = await median_acknowledgement(tx, org, project, since)
        rows = await _select_rows(tx, org, project, query, (at - 1) * PAGE_ROWS)
        now = tx.now
    return page(
        "incidents/console/incident_list.html",
        frame=frame,
        mark=mark_of(IncidentStatus.INVESTIGATING, tally.worst) if tally.open else "up",
        sentence=summary(tally),
        under=under(tally, median, now),
        groups=_groups(rows[:PAGE_ROWS], now),
        query=query,
        show=query.show,
        is_filtered=bool(query.q.strip() or query.impact),
        page=at,
        more=len(rows) > PAGE_ROWS and at < PAGES_MOST,
        impacts=list(IncidentImpact),
    )


async def _select_rows(
    tx: Tx, org: int, project: int, query: IncidentListQuery, skipped: int
) -> list[ListedIncident]:
    """Returns the rows of a list page plus one: open incidents first, then newest first."""
    chosen = IncidentFilter(query.q.strip(), query.impact)
    most = PAGE_ROWS + 1
    rows: list[ListedIncident] = []
    if query.show != "resolved":
        rows = await select_open(tx, org, project, chosen, most, skipped)
    if query.show != "open" and len(rows) < most:
        before = await count_open(tx, org, project, chosen) if query.show == "all" else 0
        rest = max(skipped - before, 0)
        rows += await select_resolved(tx, org, project, chosen, most - len(rows), rest)
    return rows


def summary(tally: Tally) -> str:
    """Returns the first line: `2 open incidents, 1 not acknowledged`."""
    if not tally.open:
        return "No incidents yet" if tally.newest_resolved_at is None else "No open incidents"
    said = count(tally.open, "open incident")
    if not tally.unanswered:
        return f"{said}, {'all ' if tally.open > 1 else ''}acknowledged"
    many = f"{number(tally.unanswered)} " if tally.open > 1 else ""
    return f"{said}, {many}not acknowledged"


def under(tally: Tally, median_us: int | None, now: Instant) -> str:
    """Returns the line beneath. `median_us` is the median time to acknowledge, None without one."""
    said = []
    if not tally.open and tally.newest_resolved_at is not None:
        said.append(f"The latest incident was resolved {ago(tally.newest_resolved_at, now).text}.")
    elif not tally.open:
        said.append("A monitor, a service, an external alert or a user can open an incident.")
    if median_us is not None:
        said.append(f"Median time to acknowledge over {MEDIAN_DAYS} days: {duration(median_us)}.")
    elif tally.open:
        said.append(f"No incident was acknowledged in {MEDIAN_DAYS} days.")
    return " ".join(said)


def _groups(rows: Sequence[ListedIncident], now: Instant) -> list[tuple[str, list[IncidentItem]]]:
    lines = [(row.status == IncidentStatus.RESOLVED, _item(row, now)) for row in rows]
    groups = [
        ("Open", [line for over, line in lines if not over]),
        ("Resolved", [line for over, line in lines if over]),
    ]
    return [group for group in groups if group[1]]


def _item(row: ListedIncident, now: Instant) -> IncidentItem:
    who = "nobody"
    if row.acknowledged_at is not None:
        who = row.acknowledged_label
        if row.status != IncidentStatus.RESOLVED:
            who += f", {clock(row.acknowledged_at, seconds=False)}"
    return IncidentItem(
        row.uid,
        row.number,
        row.about,
        mark_of(row.status, row.impact),
        row.title,
        row.status.capitalize(),
        row.impact,
        moment(row.started_at, now),
        lasted(row.started_at, row.resolved_at, now),
        who,
        row.status != IncidentStatus.RESOLVED,
        row.acknowledged_at is not None and not row.has_expired,
    )


ROUTES: Final = (
    page_route(
        method="GET",
        path="/projects/{projectID}/incidents",
        action=Permission(Need.VIEWER),
        scope=("project", "projectID"),
        handler=render_incident_list,
        summary="Incidents of a project.",
        query=IncidentListQuery,
    ),
)
