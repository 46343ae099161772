"""Panels beside the overview: services with their budget, on call, changes and regions."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final
from uuid import UUID

import trio

from ....storage.changes.queries.console_changes import select_latest_of_project
from ....storage.core.instant import DAY, Instant
from ....storage.engine.pools import Tx
from ....storage.oncall.queries.oncall_schedules import select_rosters, select_schedules_of
from ....storage.oncall.rows import ScheduleRow
from ....storage.oncall.rules.oncall_schedule import stretch
from ....storage.scheduling.queries.region_list import select_regions
from ...monitors.console.project_statuses import MonitorData
from ...oncall.console.oncall_weeks import until_text, zone_of
from ...services.console.service_list import ServiceItem, ServiceListData, lines_of
from ...ui.change_text import OUTCOMES, ChangeSymbol, name_of, outcome_of, short, sign_of
from ...ui.formatting import COVERAGE_SAMPLE, NOTHING, Moment, count, moment, percent
from ...wire.route import Request
from ...wire.scope_keys import org_of, project_of

SERVICES_MOST: Final = 8
SCHEDULES_MOST: Final = 5
CHANGES_MOST: Final = 5
_UNPROBED: Final = frozenset({"push", "composite"})
# Overrides that can apply while the panel is shown.
_AHEAD: Final = 7 * DAY


@dataclass(frozen=True, slots=True)
class ServiceBudgetItem:
    """`text` is a dash if the budget is withheld, with the reason as the note."""

    uid: UUID
    name: str
    mark: str
    word: str
    text: str
    note: str
    # Width of the meter in percent, None without a figure.
    width: int | None


@dataclass(frozen=True, slots=True)
class OnCallItem:
    schedule: str
    who: str
    until: str
    mark: str


@dataclass(frozen=True, slots=True)
class ChangeItem:
    sign: ChangeSymbol
    service: str
    path: str
    name: str
    outcome: str
    at: Moment


@dataclass(frozen=True, slots=True)
class RegionItem:
    name: str
    reports: bool
    monitors: str


@dataclass(frozen=True, slots=True)
class OverviewRail:
    services: Sequence[ServiceBudgetItem]
    # Services that the panel does not list.
    further_services: int
    on_call: Sequence[OnCallItem]
    # Schedules that the panel does not list.
    further_schedules: int
    changes: Sequence[ChangeItem]
    regions: Sequence[RegionItem]


async def select_rail(
    ask: Request, tx: Tx, watched: Sequence[MonitorData], facts: ServiceListData
) -> OverviewRail:
    """Reads the panels."""
    org, project = org_of(ask), project_of(ask)
    regions = await select_regions(tx, ask.context.options.regions)
    schedules = await select_schedules_of(tx, org, project)
    return OverviewRail(
        [_budget(one) for one in lines_of(facts, SERVICES_MOST)],
        max(len(facts.rows) - SERVICES_MOST, 0),
        await _on_call(tx, org, schedules[:SCHEDULES_MOST]),
        max(len(schedules) - SCHEDULES_MOST, 0),
        await _changes(tx, org, project),
        _regions(watched, {name for name, is_live in regions if not is_live}),
    )


def _budget(one: ServiceItem) -> ServiceBudgetItem:
    share = one.share
    text, note, width = NOTHING, one.left.note, None
    if share is not None:
        text = percent(max(share, Fraction(0)), COVERAGE_SAMPLE)
        width = min(max(int(100 * share), 0), 100)
        note = one.left.note if share < 0 else ""
    return ServiceBudgetItem(one.uid, one.name, one.mark, one.word, text, note, width)


async def _on_call(tx: Tx, org: int, schedules: Sequence[ScheduleRow]) -> list[OnCallItem]:
    found = []
    for standing in await select_rosters(tx, org, schedules, tx.now, Instant(tx.now + _AHEAD)):
        duty = stretch(standing.roster, standing.overrides, tx.now)
        until = until_text(duty, zone_of(standing), tx.now)
        who, mark = standing.name_of(duty.channel), "down" if duty.is_gap else "up"
        found.append(OnCallItem(standing.schedule.name, who, until, mark))
        await trio.lowlevel.checkpoint()
    return found


async def _changes(tx: Tx, org: int, project: int) -> list[ChangeItem]:
    found = []
    for one in await select_latest_of_project(tx, org, project, CHANGES_MOST):
        change, phases = one.happened.change, one.happened.phases
        found.append(
            ChangeItem(
                sign_of(change.kind, phases),
                one.service_name,
                f"/services/{one.service_uid}/changes/{phases[-1].uid}",
                short(name_of(change, one.happened.ref)),
                OUTCOMES[outcome_of(phases)],
                moment(change.latest_at, tx.now),
            )
        )
    return found


def _regions(watched: Sequence[MonitorData], silent: Collection[str]) -> list[RegionItem]:
    """Returns the regions of the project's monitors, those that do not report first."""
    many = Counter(item.row.region for item in watched if item.row.type not in _UNPROBED)
    names = sorted(many, key=lambda name: (name not in silent, name))
    return [RegionItem(name, name not in silent, count(many[name], "monitor")) for name in names]
