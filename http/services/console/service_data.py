"""Data of the service screen, read in one transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ....storage.alerting.queries.alerting_state import AlertingState, select_alerting_state
from ....storage.alerting.queries.service_alerting import select_alerting
from ....storage.alerting.rows import AlertingRow
from ....storage.changes.queries.changes import Happened
from ....storage.changes.queries.console_changes import select_happened
from ....storage.changes.rules.change import AHEAD_MOST_US, ChangeKind
from ....storage.core.instant import DAY, HOUR, MINUTE, Instant
from ....storage.core.key import MonitorKey, ServiceKey
from ....storage.core.time_span import TimeSpan
from ....storage.engine.pools import Tx
from ....storage.incidents.queries.response_times import ResponseTimes, select_response_times
from ....storage.monitors.queries.monitors import select_superseded
from ....storage.monitors.rows import MonitorRow
from ....storage.mutes.queries import mutes_of_services
from ....storage.mutes.rows import MuteRow
from ....storage.objectives.queries.burn_rules import select_rules_of_services
from ....storage.objectives.queries.service_targets import select_service_targets
from ....storage.objectives.rows import BurnRuleRow, ServiceTargetRow
from ....storage.objectives.rules import DEFAULT_RULES, BurnRule
from ....storage.results.queries.console_results import ResultTimeline, select_courses
from ....storage.services.queries.console_services import (
    IncidentOf,
    MaintenanceOf,
    MemberRow,
    select_incidents_of,
    select_maintenance_of,
    select_member_rows,
)
from ....storage.services.queries.service_dependencies import select_edges
from ....storage.services.queries.service_health import HealthNow, select_health_now
from ....storage.services.queries.service_reports import (
    Declared,
    Repair,
    select_buckets,
    select_burns,
    select_declared,
    select_repairing,
    select_windows_of,
)
from ....storage.services.queries.service_revisions import select_noted
from ....storage.services.queries.services import select_service, select_services
from ....storage.services.rows import EpochRow, RevisionAuthor, ServiceRow
from ....storage.services.rules.epoch import Revision
from ....storage.services.rules.service_dependency import turned
from ....storage.services.rules.service_health import Durations, MemberState
from ....storage.services.rules.service_report import WINDOWS, BurnWindow, ReportWindow
from ...ui.reliability_text import window_shown
from ...ui.shell.page_layout import PageLayout, frame_of
from ...ui.time_slots import Axis
from ...wire.errors import Problem
from ...wire.route import Request
from .response_panel import response_span

# Range → (length, step of its axis).
RANGES = {
    "7d": (7 * DAY, HOUR),
    "14d": (14 * DAY, 2 * HOUR),
    "30d": (30 * DAY, 4 * HOUR),
}
# Window whose budget is drawn by day.
_BY_DAY = "90d"
MEMBER_SLOT_US = 30 * MINUTE
MEMBER_SLOTS = 48
MEMBERS_DRAWN_MOST = 40


@dataclass(frozen=True, slots=True)
class ServiceBucket:
    """Sealed time of one step, over all its epochs. It can be incomplete."""

    start: Instant
    minutes: int
    durations: Durations


@dataclass(frozen=True, slots=True)
class ServiceFacts:
    frame: PageLayout
    row: ServiceRow
    now: Instant
    health: HealthNow
    revisions: Sequence[Revision]
    noted: Sequence[RevisionAuthor]
    epochs: Sequence[EpochRow]
    members: Sequence[MemberRow]
    # Names of all members of all revisions that still exist.
    names: Mapping[int, str]
    courses: Mapping[MonitorKey, ResultTimeline]
    axis: Axis
    targets: Mapping[str, ServiceTargetRow]
    shown: str
    windows: Mapping[str, ReportWindow]
    burn_rules: Sequence[BurnRule]
    burn_rows: Sequence[BurnRuleRow]
    burns: Sequence[BurnWindow]
    range_name: str
    hours: Sequence[ServiceBucket]
    days: Sequence[ServiceBucket]
    changes: Sequence[Happened]
    incidents: Sequence[IncidentOf]
    maintenance: Sequence[MaintenanceOf]
    upstreams: Sequence[tuple[ServiceRow, HealthNow]]
    dependants: Sequence[tuple[ServiceRow, HealthNow]]
    alerting: AlertingRow | None
    alerting_state: AlertingState
    repairing: Sequence[Repair]
    # Monitors that the service supersedes.
    supersedes: Sequence[MonitorRow]
    responses: ResponseTimes
    mutes: Sequence[MuteRow]

    @property
    def objective(self) -> int | None:
        target = self.targets.get(self.shown)
        return None if target is None else target.objective

    @property
    def governing(self) -> Revision | None:
        """Returns the revision that determines the current health."""
        number = self.health.revision
        return next((one for one in self.revisions if one.revision == number), None)


async def select_facts(
    ask: Request, shown: str, range_name: str, answers: str = "30d"
) -> ServiceFacts:
    async with ask.context.pool.transaction("console_service", read_only=True) as tx:
        row = await select_service(tx, ask.ids["serviceID"])
        if row is None:
            raise Problem("not_found")
        return await _facts(ask, tx, row, shown, range_name, answers)


async def _facts(
    ask: Request, tx: Tx, row: ServiceRow, shown: str, range_name: str, answers: str
) -> ServiceFacts:
    key, now = row.key, tx.now
    targets = (await select_service_targets(tx, [key]))[key]
    shown = shown if shown in WINDOWS else window_shown(targets)
    target = targets.get(shown)
    rules, rows, burns = await _burns(tx, row, target)
    upstreams, dependants, health, declared = await _neighbours(tx, row)
    revisions = declared[0][key]
    ever = sorted({member for revision in revisions for member in revision.monitors})
    newest = revisions[-1].monitors if revisions else ()
    known = await select_member_rows(tx, row.org, ever)
    members = _in_order([one for one in known if one.id in newest], health[key])
    until = row.sealed_through or now
    length = RANGES[range_name][0]
    # The hours of the time line, and those of the budget, whose window is shown by day or by hour.
    hours_us = max(length, 0 if shown == _BY_DAY else WINDOWS[shown]) + DAY
    from_at = Instant(now - length)
    axis, alerting = _axis(now), await select_alerting(tx, key)
    drawn = [MonitorKey((row.org, member.id)) for member in members[:MEMBERS_DRAWN_MOST]]
    return ServiceFacts(
        frame=await frame_of(ask, tx),
        row=row,
        now=now,
        health=health[key],
        revisions=revisions,
        noted=await select_noted(tx, key),
        epochs=declared[1][key],
        members=members,
        names={one.id: one.name for one in known},
        courses=await select_courses(tx, drawn, axis.from_at, axis.until, axis.step_us),
        axis=axis,
        targets=targets,
        shown=shown,
        windows=await select_windows_of(tx, row, list(WINDOWS), declared),
        burn_rules=rules,
        burn_rows=rows,
        burns=burns,
        range_name=range_name,
        hours=await select_sealed(tx, row, Instant(until - hours_us), until, "hour"),
        days=await select_sealed(tx, row, Instant(until - 91 * DAY), until, "day")
        if shown == _BY_DAY
        else (),
        changes=await select_happened(tx, key, changes_within(now, length), list(ChangeKind), None),
        incidents=await select_incidents_of(
            tx, row.org, row.project, row.id, ever, from_at, Instant(now + 1)
        ),
        maintenance=await select_maintenance_of(
            tx, row.org, row.project, ever, from_at, Instant(now + 1)
        ),
        upstreams=upstreams,
        dependants=dependants,
        alerting=alerting,
        alerting_state=await select_alerting_state(tx, key, now, alerting),
        repairing=await select_repairing(tx, row),
        supersedes=await select_superseded(tx, *key),
        responses=await select_response_times(tx, key, response_span(answers, now)),
        mutes=(await mutes_of_services(tx, [key])).get(key, ()),
    )


_ORDER = (
    MemberState.DOWN,
    MemberState.MISSING,
    MemberState.NOT_BEGUN,
    MemberState.PAUSED,
    MemberState.MAINTENANCE,
    MemberState.UP,
)


def _in_order(members: Sequence[MemberRow], health: HealthNow) -> list[MemberRow]:
    """Returns members in trouble first, then by name."""
    place = {seen: n for n, seen in enumerate(_ORDER)}
    return sorted(members, key=lambda one: place[health.members.get(one.id, MemberState.MISSING)])


def _axis(now: Instant) -> Axis:
    """Returns the last day. Slots begin at full half hours, so that they do not shift on reload."""
    until = now - now % MEMBER_SLOT_US + MEMBER_SLOT_US
    return Axis(Instant(until - MEMBER_SLOTS * MEMBER_SLOT_US), MEMBER_SLOT_US, MEMBER_SLOTS)


async def _burns(
    tx: Tx, row: ServiceRow, target: ServiceTargetRow | None
) -> tuple[Sequence[BurnRule], Sequence[BurnRuleRow], Sequence[BurnWindow]]:
    """Returns the burn rules, their rows, and the burn rates of their windows.

    A target without rules gets the default rules. Each rule has a long and a short window.
    """
    if target is None:
        return (), (), ()
    rows = (await select_rules_of_services(tx, [row.key])).get(row.key, {}).get(target.window, [])
    rules = [one.rule for one in rows] or list(DEFAULT_RULES)
    lengths = [us for rule in rules for us in (rule.long_us, rule.short_us)]
    found = await select_burns(tx, [(row, target.objective, lengths)])
    return rules, rows, found.get(row.key, [])


def changes_within(now: Instant, length_us: int) -> TimeSpan:
    """Returns the span up to now, extended by the permitted lead of a sender's clock."""
    return TimeSpan(Instant(now - length_us), Instant(now + AHEAD_MOST_US + 1))


async def select_sealed(
    tx: Tx, row: ServiceRow, from_: Instant, to: Instant, step: str
) -> list[ServiceBucket]:
    """Returns the sealed steps that begin in [from, to), each summed over its epochs."""
    found: dict[Instant, ServiceBucket] = {}
    for start, _, each in await select_buckets(tx, row, from_, to, step):
        before = found.get(start)
        found[start] = (
            ServiceBucket(start, each.minutes, each.durations)
            if before is None
            else ServiceBucket(
                start, before.minutes + each.minutes, before.durations + each.durations
            )
        )
    return list(found.values())


async def _neighbours(
    tx: Tx, row: ServiceRow
) -> tuple[
    list[tuple[ServiceRow, HealthNow]],
    list[tuple[ServiceRow, HealthNow]],
    dict[ServiceKey, HealthNow],
    Declared,
]:
    """Returns the upstreams, the dependents, and the health and declarations of all of them."""
    edges = await select_edges(tx, row.org, row.project)
    upstreams = [ServiceKey((row.org, key)) for key in edges.get(row.id, ())]
    dependants = [ServiceKey((row.org, key)) for key in turned(edges).get(row.id, ())]
    rows = await select_services(tx, [*upstreams, *dependants])
    keys = [row.key, *rows]
    declared = await select_declared(tx, keys)
    health = await select_health_now(tx, keys, revisions=declared[0])

    def named(keys: Sequence[ServiceKey]) -> list[tuple[ServiceRow, HealthNow]]:
        there = [rows[key] for key in keys if key in rows]
        return [(one, health[one.key]) for one in sorted(there, key=lambda r: r.name.lower())]

    return named(upstreams), named(dependants), health, declared
