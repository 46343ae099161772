"""SLA report of a project: objectives and availability in four windows.

The report is printable: the reason for a withheld figure is visible on paper too.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal
from uuid import UUID

import msgspec

from ....storage.accounts.rules.access import Need, Permission
from ....storage.core.availability import ErrorBudget, Withheld, budget, figure
from ....storage.core.instant import Instant
from ....storage.engine.pools import Tx
from ....storage.figures.queries.availability import Days, select_days
from ....storage.figures.queries.availability import select_windows as select_monitor_windows
from ....storage.figures.queries.monitor_time import MonitorTime
from ....storage.figures.queries.project_availability import ProjectTime, select_project_windows
from ....storage.monitors.queries.console_monitors import count_listed, select_listed
from ....storage.objectives.queries.monitor_targets import select_monitor_targets
from ....storage.objectives.queries.project_targets import select_project_targets
from ....storage.objectives.queries.service_targets import select_service_targets
from ....storage.objectives.rows import MonitorTarget, ProjectTarget
from ....storage.services.queries.service_reports import select_windows
from ....storage.services.queries.services import select_services_of_project
from ....storage.services.rules.service_report import WINDOWS
from ...monitors.console.project_statuses import ProjectStatuses, select_statuses
from ...ui.form_routes import page_route
from ...ui.formatting import NOTHING, count, coverage, day, number, percent
from ...ui.live_page import RENEWED_US
from ...ui.reliability_text import (
    LABELS,
    ReliabilityText,
    availability,
    budget_left,
    budget_of,
    objective_text,
    verdict_text,
    why,
    window_shown,
)
from ...ui.render import page
from ...ui.shell.page_layout import PageLayout, frame_of
from ...wire.route import Request, Response
from ...wire.scope_keys import org_of, project_of

SERVICES_MOST: Final = 60
_KEPT: Final = "sla"
# Each monitor requires a read of its hours of ninety days.
MONITORS_MOST: Final = 25


class ReportQuery(msgspec.Struct, frozen=True):
    show: Literal["services", "monitors"] = "services"
    page: int = 1


@dataclass(frozen=True, slots=True)
class Cell:
    """Figure of one window.

    `met` is `met`, `missed` or `not enough data`; it is empty without an objective.
    """

    told: ReliabilityText
    objective: str
    met: str


@dataclass(frozen=True, slots=True)
class SlaItem:
    name: str
    path: str
    cells: Sequence[Cell]
    left: ReliabilityText
    over: str


@dataclass(frozen=True, slots=True)
class SlaPage:
    lines: Sequence[SlaItem]
    pages: int
    at: int


async def render_sla_report(ask: Request) -> Response:
    org, project = org_of(ask), project_of(ask)
    async with ask.context.pool.transaction("console_sla", read_only=True) as tx:
        frame = await frame_of(ask, tx)
        services = await _services(tx, org, project)
        if ask.query.show == "services":
            listed = _paged(services, ask.query.page)
        else:
            listed = await _monitors(
                tx, org, project, ask.query.page, ask.context.options.heartbeat_days
            )
        whole = await _whole_percent(tx, org, project, await select_statuses(ask, tx))
    return _reply(frame, ask.query.show, services, listed, whole)


def _reply(
    frame: PageLayout,
    which: str,
    services: Sequence[SlaItem],
    listed: SlaPage,
    whole: Sequence[Cell],
) -> Response:
    mark, sentence = summary([cell.met for line in services for cell in line.cells])
    return page(
        "objectives/console/sla_report.html",
        frame=frame,
        mark=mark,
        sentence=sentence,
        windows=list(LABELS.values()),
        whole=list(zip(LABELS.values(), whole, strict=True)),
        which=which,
        lines=listed.lines,
        page=listed.at,
        pages=listed.pages,
    )


def summary(met: Sequence[str]) -> tuple[str, str]:
    """Summarizes the objectives of services.

    An objective that cannot be judged does not count as met.
    """
    tally = Counter(met)
    missed, kept, open_ = tally["missed"], tally["met"], tally["not enough data"]
    total = missed + kept + open_
    if not total:
        return "", "No objectives yet"
    if missed:
        verb = "is" if missed == 1 else "are"
        return "down", f"{number(missed)} of {count(total, 'objective')} {verb} missed"
    if not kept:
        return "unknown", "No objective has enough data yet"
    if open_:
        return "unknown", f"{count(kept, 'objective')} met, {number(open_)} without enough data"
    return "up", "The objective is met" if total == 1 else f"All {number(total)} objectives are met"


async def _services(tx: Tx, org: int, project: int) -> list[SlaItem]:
    rows = await select_services_of_project(tx, org, project)
    targets = await select_service_targets(tx, [row.key for row in rows])
    windows = {name: await select_windows(tx, rows, name) for name in WINDOWS}
    found = []
    for row in sorted(rows, key=lambda one: one.name.lower()):
        mine = {name: target.objective for name, target in targets[row.key].items()}
        over = window_shown(targets[row.key])
        cells = []
        for name in WINDOWS:
            window = windows[name][row.key]
            met = verdict_text(window, mine.get(name)).removeprefix("objective ")
            cells.append(_cell(availability(window), mine.get(name), met))
        left = budget_left(windows[over][row.key], mine.get(over))
        found.append(SlaItem(row.name, f"/services/{row.uid}", cells, left, LABELS[over]))
    return found


def _cell(told: ReliabilityText, objective: int | None, met: str) -> Cell:
    if objective is None:
        return Cell(told, "", "")
    return Cell(told, objective_text(objective), met or "not enough data")


def _paged(lines: Sequence[SlaItem], wanted: int) -> SlaPage:
    pages = max(-(-len(lines) // SERVICES_MOST), 1)
    at = min(max(wanted, 1), pages)
    return SlaPage(lines[(at - 1) * SERVICES_MOST : at * SERVICES_MOST], pages, at)


async def _monitors(tx: Tx, org: int, project: int, wanted: int, raw_days: int) -> SlaPage:
    pages = max(-(-await count_listed(tx, org, project) // MONITORS_MOST), 1)
    at = min(max(wanted, 1), pages)
    shown = await select_listed(tx, org, project, (at - 1) * MONITORS_MOST, MONITORS_MOST)
    types = {row.key: row.type for row in shown}
    if not types:
        return SlaPage((), pages, at)
    measured = await select_monitor_windows(tx, types, list(WINDOWS.values()), raw_days)
    days = await select_days(tx, types, tx.now, 1)
    targets = await select_monitor_targets(tx, list(types))
    lines = []
    for row in shown:
        key = row.key
        mine = targets.get(key, {})
        lines.append(
            _monitor(row.name, row.uid, [one.measured for one in measured[key]], days[key], mine)
        )
    return SlaPage(lines, pages, at)


def _monitor(
    name: str,
    uid: UUID,
    measured: Sequence[MonitorTime],
    days: Days,
    targets: Mapping[str, MonitorTarget],
) -> SlaItem:
    mark, begun = days.watermark, days.begun
    sealed = mark is not None and begun is not None and mark > begun
    objectives = {window: target.objective for window, target in targets.items()}
    over = window_shown(objectives)
    cells = [
        _of_measured(
            one,
            objectives.get(window),
            sealed=sealed,
            begun=begun if begun and mark and begun > mark - WINDOWS[window] else None,
        )
        for window, one in zip(WINDOWS, measured, strict=True)
    ]
    split = dict(zip(WINDOWS, measured, strict=True))[over].split
    left = budget_of(split, objectives.get(over)) if sealed else ReliabilityText("", "")
    return SlaItem(name, f"/monitors/{uid}", cells, left, LABELS[over])


def _of_measured(
    one: MonitorTime, objective: int | None, *, sealed: bool, begun: Instant | None = None
) -> Cell:
    said = figure(one.split, sealed=sealed)
    ratio = one.split.availability()
    if said.withheld_reason is not None or ratio is None:
        reason = said.withheld_reason or Withheld.NOTHING_MEASURED
        return _cell(
            ReliabilityText(NOTHING, f"No data: {why(reason)}", withheld=True), objective, ""
        )
    note = f"coverage {coverage(one.split.coverage())}"
    if begun is not None:
        note += f", since {day(begun)}"
    met = ""
    if objective is not None:
        found = budget(one.split, objective)
        if isinstance(found, ErrorBudget):
            met = "met" if found.met else "missed"
    return _cell(ReliabilityText(percent(ratio, one.total), note), objective, met)


async def _whole_percent(tx: Tx, org: int, project: int, statuses: ProjectStatuses) -> list[Cell]:
    """Returns the figures of all monitors of the project together, at most RENEWED_US old.

    They are read where all monitors have lines: one figure would contradict the others.
    """
    targets: Mapping[str, ProjectTarget] = await select_project_targets(tx, org, project)
    found, until = statuses.dependent.get(_KEPT, (None, tx.now))
    are_all_shown = await count_listed(tx, org, project) <= MONITORS_MOST
    if not isinstance(found, ProjectTime) or tx.now >= until or are_all_shown:
        found = await select_project_windows(tx, org, project, list(WINDOWS.values()))
        statuses.dependent[_KEPT] = (found, Instant(tx.now + RENEWED_US))
    return [
        _of_measured(
            one.measured,
            None if (target := targets.get(window)) is None else target.objective,
            sealed=one.measured.split.range_us > 0,
        )
        for window, one in zip(WINDOWS, found.windows, strict=True)
    ]


_PROJECT: Final = ("project", "projectID")

ROUTES: Final = (
    page_route(
        method="GET",
        path="/projects/{projectID}/sla",
        action=Permission(Need.VIEWER),
        scope=_PROJECT,
        handler=render_sla_report,
        summary="The SLA report of a project.",
        query=ReportQuery,
    ),
)
