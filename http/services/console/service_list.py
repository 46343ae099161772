"""Services of a project: the smallest remaining budget first, withheld figures last."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final
from uuid import UUID

import msgspec

from ....storage.accounts.rules.access import Need, Permission
from ....storage.core.key import ServiceKey
from ....storage.engine.pools import Tx
from ....storage.objectives.queries.service_targets import select_service_targets
from ....storage.objectives.rows import ServiceTargetRow
from ....storage.services.queries.service_health import HealthNow, select_health_now
from ....storage.services.queries.service_reports import select_windows
from ....storage.services.queries.services import select_services_of_project
from ....storage.services.rows import ServiceRow
from ....storage.services.rules.service_report import ReportWindow
from ...ui.form_routes import page_route
from ...ui.formatting import count, number
from ...ui.page_layout import frame_of
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
from ...wire.route import Request, Response
from ...wire.scope_keys import org_of, project_of

PAGE_ROWS: Final = 100
_ORDER: Final = ("down", "degraded", "unknown", "pending", "maint", "up")
_ARE: Final = {
    "down": "down",
    "degraded": "degraded",
    "unknown": "unknown",
    "pending": "no declaration",
    "maint": "in maintenance",
}


class ServicesQuery(msgspec.Struct, frozen=True):
    page: int = 1


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


@dataclass(frozen=True, slots=True)
class ServiceListData:
    """All services of the project, each with the window that the list shows."""

    rows: Sequence[ServiceRow]
    health: Mapping[ServiceKey, HealthNow]
    targets: Mapping[ServiceKey, Mapping[str, ServiceTargetRow]]
    windows: Mapping[ServiceKey, ReportWindow]


async def render_service_list(ask: Request) -> Response:
    async with ask.context.pool.transaction("console_services", read_only=True) as tx:
        frame = await frame_of(ask, tx)
        facts = await select_facts(tx, org_of(ask), project_of(ask))
    lines = lines_of(facts)
    pages = max(-(-len(lines) // PAGE_ROWS), 1)
    at = min(max(ask.query.page, 1), pages)
    mark, sentence = summary([line.mark for line in lines])
    return page(
        "services/console/service_list.html",
        frame=frame,
        mark=mark,
        sentence=sentence,
        under=under(lines),
        lines=lines[(at - 1) * PAGE_ROWS : at * PAGE_ROWS],
        page=at,
        pages=pages,
    )


async def select_facts(tx: Tx, org: int, project: int) -> ServiceListData:
    rows = await select_services_of_project(tx, org, project)
    keys = [row.key for row in rows]
    targets = await select_service_targets(tx, keys)
    by_window: dict[str, list[ServiceRow]] = {}
    for row in rows:
        by_window.setdefault(window_shown(targets[row.key]), []).append(row)
    windows: dict[ServiceKey, ReportWindow] = {}
    for window, those in by_window.items():
        windows |= await select_windows(tx, those, window)
    return ServiceListData(rows, await select_health_now(tx, keys), targets, windows)


def lines_of(facts: ServiceListData) -> list[ServiceItem]:
    found = sorted(facts.rows, key=lambda row: _place(facts, row))
    return [_item(facts, row) for row in found]


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
    )


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
