"""Services of a project: the smallest remaining budget first, withheld figures last."""

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final
from uuid import UUID

import msgspec
from markupsafe import Markup

from ....storage.accounts.rules.access import Need, Permission
from ....storage.core.instant import DAY, Instant
from ....storage.core.key import MonitorKey, ServiceKey
from ....storage.engine.pools import Tx
from ....storage.objectives.queries.service_targets import select_service_targets
from ....storage.objectives.rows import ServiceTargetRow
from ....storage.services.queries.service_health import (
    HealthNow,
    select_health_now,
)
from ....storage.services.queries.service_list import ServiceDay, select_service_days
from ....storage.services.queries.service_reports import select_windows
from ....storage.services.queries.services import select_services_of_project
from ....storage.services.rows import ServiceRow
from ....storage.services.rules.service_health import MemberState
from ....storage.services.rules.service_report import ReportWindow
from ...monitors.console.project_statuses import ProjectStatuses, select_statuses
from ...ui.form_routes import page_route
from ...ui.formatting import count, number
from ...ui.live_page import not_modified, select_tag, tagged
from ...ui.plots.heartbeat_strip import HeartbeatSlot, strip
from ...ui.reliability_text import (
    LABELS,
    ReliabilityText,
    availability,
    budget_left,
    left_share,
    mark_of,
    objective_text,
    verdict_text,
    window_shown,
    word_of,
)
from ...ui.render import page
from ...ui.shell.page_layout import frame_of
from ...wire.route import Request, Response
from ...wire.scope_keys import org_of, project_of

PAGE_ROWS: Final = 100
DAYS: Final = 30
_KEPT: Final = "services"
_ORDER: Final = ("down", "degraded", "unknown", "pending", "maint", "up")
_ARE: Final = {
    "down": "down",
    "degraded": "degraded",
    "unknown": "unknown",
    "pending": "without a declaration",
    "maint": "in maintenance",
}


class ServicesQuery(msgspec.Struct, frozen=True):
    page: int = 1
    # The services whose rows the client shows, for a refresh.
    shown: list[UUID] = []


@dataclass(frozen=True, slots=True)
class ServiceItem:
    uid: UUID
    name: str
    mark: str
    word: str
    window: str
    availability: ReliabilityText
    judged: str
    objective: str
    left: ReliabilityText
    # Remaining share of the budget, negative if overdrawn; None if it is withheld.
    share: Fraction | None
    row: ServiceRow
    # Days of the last 30, None where they are not drawn.
    strip: Markup | None = None

    @property
    def width(self) -> int | None:
        """Width of the meter in percent, None without a figure."""
        return None if self.share is None else max(min(round(100 * self.share), 100), 0)


@dataclass(frozen=True, slots=True)
class ServiceListData:
    """All services of the project, each with the window that the list shows."""

    rows: Sequence[ServiceRow]
    health: Mapping[ServiceKey, HealthNow]
    targets: Mapping[ServiceKey, Mapping[str, ServiceTargetRow]]
    windows: Mapping[ServiceKey, ReportWindow]


async def render_service_list(ask: Request) -> Response:
    async with ask.context.pool.transaction("console_services", read_only=True) as tx:
        tag = await select_tag(ask, tx, (), services=True)
        if known := not_modified(ask, tag):
            return known
        frame = await frame_of(ask, tx)
        statuses = await select_statuses(ask, tx)
        facts = await select_facts(tx, org_of(ask), project_of(ask), statuses)
        lines = lines_of(facts)
        pages = max(-(-len(lines) // PAGE_ROWS), 1)
        at = min(max(ask.query.page, 1), pages)
        listed = await with_strips(tx, lines[(at - 1) * PAGE_ROWS : at * PAGE_ROWS])
        # The client still shows these services; they are on another page of the list now.
        wanted = set(ask.query.shown[:PAGE_ROWS]) - {line.uid for line in listed}
        elsewhere = await with_strips(tx, [line for line in lines if line.uid in wanted])
    mark, sentence = summary([line.mark for line in lines])
    answer = page(
        "services/console/service_list.html",
        frame=frame,
        mark=mark,
        sentence=sentence,
        under=under(lines),
        lines=listed,
        elsewhere=elsewhere,
        page=at,
        pages=pages,
    )
    return tagged(answer, tag)


async def select_facts(
    tx: Tx, org: int, project: int, statuses: ProjectStatuses
) -> ServiceListData:
    """Returns all services of the project, from the statuses if they were read with them.

    A figure can be RENEWED_US old, a state cannot.
    """
    kept, until = statuses.dependent.get(_KEPT, (None, tx.now))
    if isinstance(kept, ServiceListData) and tx.now < until:
        return kept
    known = statuses.known()
    rows = await select_services_of_project(tx, org, project)
    keys = [row.key for row in rows]
    targets = await select_service_targets(tx, keys)
    by_window: dict[str, list[ServiceRow]] = {}
    for row in rows:
        by_window.setdefault(window_shown(targets[row.key]), []).append(row)
    windows: dict[ServiceKey, ReportWindow] = {}
    for window, those in by_window.items():
        windows |= await select_windows(tx, those, window)
    health = await select_health_now(tx, keys, known)
    if unseen := _unseen(health, known.keys(), statuses):
        # The statuses do not show the next result of these members.
        read_anew = {key: one for key, one in known.items() if key not in unseen}
        health = await select_health_now(tx, keys, read_anew)
        return ServiceListData(rows, health, targets, windows)
    found = ServiceListData(rows, health, targets, windows)
    ends = [one.until for one in health.values() if one.until is not None]
    statuses.dependent[_KEPT] = (found, min([statuses.until, *ends]))
    return found


def _unseen(
    health: Mapping[ServiceKey, HealthNow], known: Container[MonitorKey], statuses: ProjectStatuses
) -> set[MonitorKey]:
    """Returns the members whose state can change although the statuses are current.

    They are members of other projects, deleted monitors, and those whose newest result is fresh,
    but not by the rules of the service.
    """
    return {
        member
        for key, one in health.items()
        for member, how in ((MonitorKey((key[0], id_)), how) for id_, how in one.members.items())
        if member not in known
        or (how is MemberState.MISSING and member[1] not in statuses.unsettled)
    }


def lines_of(facts: ServiceListData, most: int | None = None) -> list[ServiceItem]:
    """Returns the first `most` services of the list, or all."""
    found = sorted(facts.rows, key=lambda row: _place(facts, row))
    return [_item(facts, row) for row in found[:most]]


def _place(facts: ServiceListData, row: ServiceRow) -> tuple[int, Fraction, str]:
    """Returns the sort key: remaining budget, then no figure, then no objective."""
    objective = _objective(facts, row)
    left = left_share(facts.windows[row.key], objective)
    if left is not None:
        return 0, left, row.name.lower()
    return (2 if objective is None else 1), Fraction(0), row.name.lower()


def _objective(facts: ServiceListData, row: ServiceRow) -> int | None:
    target = facts.targets[row.key].get(facts.windows[row.key].window)
    return None if target is None else target.objective


def _item(facts: ServiceListData, row: ServiceRow) -> ServiceItem:
    window, health = facts.windows[row.key], facts.health[row.key]
    objective = _objective(facts, row)
    return ServiceItem(
        row.uid,
        row.name,
        mark_of(health),
        word_of(health),
        LABELS[window.window],
        availability(window),
        verdict_text(window, objective),
        "" if objective is None else objective_text(objective),
        budget_left(window, objective),
        left_share(window, objective),
        row,
    )


async def with_strips(tx: Tx, lines: Sequence[ServiceItem]) -> list[ServiceItem]:
    """Returns the lines with a strip of their last 30 days."""
    if not lines:
        return []
    today = Instant(tx.now - tx.now % DAY)
    first = Instant(today - (DAYS - 1) * DAY)
    org = lines[0].row.org
    found = await select_service_days(tx, org, [line.row.id for line in lines], first, today)
    return [
        replace(line, strip=_strip(line.row, found.get(line.row.id, {}), first)) for line in lines
    ]


def _strip(row: ServiceRow, days: Mapping[Instant, ServiceDay], first: Instant) -> Markup:
    begun = row.materialization_start
    slots = []
    for number_ in range(DAYS):
        start = Instant(first + number_ * DAY)
        slots.append(day_slot(days.get(start), is_before=begun is None or start + DAY <= begun))
    return strip(slots, "Last 30 days")


def day_slot(day: ServiceDay | None, *, is_before: bool) -> HeartbeatSlot:
    """Returns failed for a day with time down. Without measured time, a day is never up."""
    if is_before:
        return HeartbeatSlot.BEFORE
    if day is not None and day.bad_us:
        return HeartbeatSlot.FAILED
    if day is not None and day.measured_us:
        return HeartbeatSlot.UP
    return HeartbeatSlot.MAINTENANCE if day is not None and day.excluded_us else HeartbeatSlot.NONE


def summary(marks: Sequence[str]) -> tuple[str, str]:
    """Returns (mark, sentence). The worst state comes first, and unknown is never healthy."""
    if not marks:
        return "", "No services yet"
    tally = Counter(marks)
    worst = next(mark for mark in _ORDER if tally[mark])
    many = len(marks)
    if worst == "up":
        said = "The service is healthy" if many == 1 else f"All {number(many)} services are healthy"
        return worst, said
    parts: list[str] = []
    for mark in _ORDER[:-2]:
        if tally[mark]:
            verb = "is" if tally[mark] == 1 else "are"
            subject = number(tally[mark]) if parts else count(tally[mark], "service")
            parts.append(f"{subject} {verb} {_ARE[mark]}")
    if not parts:
        healthy = tally["up"]
        rest = f"Others healthy: {count(healthy, 'service')}"
        return ("up", rest) if healthy else ("maint", "All services are in maintenance")
    return worst, ", ".join(parts)


def under(lines: Sequence[ServiceItem]) -> str:
    missed = sum(line.judged == "objective missed" for line in lines)
    if missed:
        verb = "misses its objective" if missed == 1 else "miss their objectives"
        return f"{count(missed, 'service')} {verb}."
    met = sum(line.judged == "objective met" for line in lines)
    if met:
        return "Every objective with enough data is met."
    return ""


_PROJECT: Final = ("project", "projectID")

ROUTES: Final = (
    page_route(
        method="GET",
        path="/projects/{projectID}/services",
        action=Permission(Need.VIEWER),
        scope=_PROJECT,
        handler=render_service_list,
        summary="The services of a project.",
        query=ServicesQuery,
    ),
)
