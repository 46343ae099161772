"""Texts of a status page, shared by its HTML and its feeds.

The texts state only data of the page. An unmeasured component is never operational, and an open
incident is always mentioned.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from ....storage.core.availability import Withheld
from ....storage.core.instant import SECOND, Instant, to_datetime
from ....storage.incidents.rules.incident import IncidentImpact, IncidentStatus
from ....storage.status_pages.rules.maintenance_step import MaintenanceStep
from ....storage.status_pages.rules.status_page import (
    Component,
    ComponentDay,
    ComponentStatus,
    Incident,
    Maintenance,
    NoDataReason,
    Page,
    PageSummaryState,
)
from ...ui.formatting import GAP, NOTHING, clock, coverage, duration, percent
from ...ui.formatting import day as day_name
from ...ui.plots.svg import BEFORE_SAID

STATUS: Final = {
    ComponentStatus.OPERATIONAL: "Operational",
    ComponentStatus.DEGRADED: "Degraded performance",
    ComponentStatus.PARTIAL_OUTAGE: "Partial outage",
    ComponentStatus.MAJOR_OUTAGE: "Major outage",
    ComponentStatus.MAINTENANCE: "Under maintenance",
    ComponentStatus.NO_DATA: "No data",
}
MARK: Final = {
    ComponentStatus.OPERATIONAL: "up",
    ComponentStatus.DEGRADED: "degraded",
    ComponentStatus.PARTIAL_OUTAGE: "degraded",
    ComponentStatus.MAJOR_OUTAGE: "down",
    ComponentStatus.MAINTENANCE: "maint",
    ComponentStatus.NO_DATA: "unknown",
}
INCIDENT_STATUS: Final = {
    IncidentStatus.INVESTIGATING: "Investigating",
    IncidentStatus.IDENTIFIED: "Identified",
    IncidentStatus.MONITORING: "Monitoring",
    IncidentStatus.RESOLVED: "Resolved",
}
MAINTENANCE_STEP: Final = {
    MaintenanceStep.SCHEDULED: "Scheduled",
    MaintenanceStep.IN_PROGRESS: "In progress",
    MaintenanceStep.COMPLETED: "Completed",
    MaintenanceStep.CANCELLED: "Cancelled",
}
# Title of maintenance without a reason.
PLANNED: Final = "Planned maintenance"
# Label of an update without a status.
NOTE: Final = "Update"
IMPACT: Final = {
    IncidentImpact.NONE: "No impact",
    IncidentImpact.MINOR: "Minor impact",
    IncidentImpact.MAJOR: "Major impact",
    IncidentImpact.CRITICAL: "Critical impact",
}
_IMPACT_MARK: Final = {
    IncidentImpact.NONE: "pending",
    IncidentImpact.MINOR: "degraded",
    IncidentImpact.MAJOR: "degraded",
    IncidentImpact.CRITICAL: "down",
}
FEED_ABOUT: Final = "Open and recent incidents"
# Each text follows "No data: ".
REASON: Final = {
    NoDataReason.NOT_BOUND: "the monitored object was deleted",
    NoDataReason.PAUSED: "checks are paused",
    NoDataReason.NO_RESULT_YET: "no result yet",
    NoDataReason.NO_FRESH_RESULT: "the last result is stale",
    NoDataReason.NOT_DECLARED: "not configured",
    NoDataReason.MEMBERS_UNKNOWN: "not enough data",
    NoDataReason.SET_BY_HAND: "set manually",
}
# Each text follows "No data: ".
WITHHELD: Final = {
    Withheld.NO_SLI: "not configured",
    Withheld.NOTHING_SEALED: "no data yet",
    Withheld.NOTHING_MEASURED: "not measured",
    Withheld.WINDOW_PRECEDES_MATERIALIZATION_ERA: "measured time starts later",
    Withheld.STORAGE_GAP: "stored data is incomplete",
    Withheld.NOT_SEALED_YET: "not complete yet",
    Withheld.EDGE_NOT_STORED: "the edges of the month are not stored",
    Withheld.ZERO_DECIDABLE_TIME: "state unknown for the whole period",
    Withheld.DECIDABLE_COVERAGE_BELOW_MIN: "coverage below 90 %",
    Withheld.SPANS_DEFINITION_REVISIONS: "definition changed",
}
_BEING: Final = {
    ComponentStatus.MAJOR_OUTAGE: ("has a major outage", "have a major outage"),
    ComponentStatus.PARTIAL_OUTAGE: ("has a partial outage", "have a partial outage"),
    ComponentStatus.DEGRADED: ("is degraded", "are degraded"),
    ComponentStatus.MAINTENANCE: ("is under maintenance", "are under maintenance"),
    ComponentStatus.NO_DATA: ("has no data", "have no data"),
    ComponentStatus.OPERATIONAL: ("is operational", "are operational"),
}
_TROUBLE: Final = (
    ComponentStatus.MAJOR_OUTAGE,
    ComponentStatus.PARTIAL_OUTAGE,
    ComponentStatus.DEGRADED,
)
_NAMED_MOST: Final = 2


@dataclass(frozen=True, slots=True)
class StatusLine:
    """Mark and text of the first line."""

    mark: str
    text: str


@dataclass(frozen=True, slots=True)
class FigureText:
    """Figure with its note. A withheld figure is a dash, with the reason as the note."""

    text: str
    note: str
    withheld: bool = False


def status_line(page: Page) -> StatusLine:
    """Returns the first line: the worst trouble, then open incidents, then the rest."""
    status = page.summary.status
    if status in _TROUBLE:
        return StatusLine(MARK[status], STATUS[status])
    if page.active:
        worst = max(page.active, key=lambda one: _IMPACTS.index(one.impact))
        text = page.active[0].title
        if len(page.active) > 1:
            text = f"{len(page.active)} open incidents"
        return StatusLine(_IMPACT_MARK[worst.impact], text)
    match page.summary.state:
        case PageSummaryState.EMPTY:
            return StatusLine("pending", "No components yet")
        case PageSummaryState.NO_DATA:
            return StatusLine("unknown", "No data")
        case PageSummaryState.OPERATIONAL if page.summary.unmeasured:
            return StatusLine("up", "All measured systems operational")
        case PageSummaryState.OPERATIONAL:
            return StatusLine("up", "All systems operational")
        case PageSummaryState.IMPAIRED:
            return StatusLine("maint", _planned(page))


_IMPACTS: Final = list(IncidentImpact)


def _planned(page: Page) -> str:
    """Returns the maintenance text, with the latest end of running maintenance."""
    ends = [one.over_at for one in page.maintenance if is_running(one, page.updated_at)]
    if not ends:
        return PLANNED
    return f"{PLANNED} until {until(max(ends), page.updated_at)}"


def line_beneath(page: Page) -> str:
    """Returns the number of operational components, and what the others have."""
    components = page.components
    if len(components) < 2:
        return "".join(f"{one.name} {_BEING[one.status][0]}." for one in components)
    if page.summary.state is PageSummaryState.NO_DATA:
        return f"0 of {len(components)} components have data."
    first = _how_many_work(components)
    clauses: list[str] = []
    for status in (*_TROUBLE, ComponentStatus.MAINTENANCE, ComponentStatus.NO_DATA):
        names = [one.name for one in components if one.status is status]
        if names:
            clauses.append(_clause(names, status))
    return f"{first} {listed(clauses)}." if clauses else first


def _how_many_work(components: Sequence[Component]) -> str:
    works = sum(one.status is ComponentStatus.OPERATIONAL for one in components)
    return f"{works} of {len(components)} components operational."


def _clause(names: Sequence[str], status: ComponentStatus) -> str:
    """Returns a clause with a few names, or with a number, always for components without data."""
    one, several = _BEING[status]
    being = one if len(names) == 1 else several
    if len(names) <= _NAMED_MOST and status is not ComponentStatus.NO_DATA:
        return f"{listed(names)} {being}"
    return f"{len(names)} component{'s' * (len(names) > 1)} {being}"


def listed(parts: Sequence[str]) -> str:
    """Returns `a`, `a and b` or `a, b and c`."""
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def why_no_data(component: Component) -> str:
    """Returns the reason for missing data, empty if the component has data."""
    return "" if component.reason is None else REASON[component.reason]


def figure_of(component: Component) -> FigureText | None:
    """Returns the availability with its coverage, None for a component without measurement."""
    measured = component.measured
    if measured is None:
        return None
    covered = f"coverage {coverage(Fraction(str(measured.figure.coverage)))}"
    availability = measured.split.availability()
    if component.withheld is not None or availability is None:
        why = WITHHELD[component.withheld or Withheld.NOTHING_MEASURED]
        return FigureText(NOTHING, f"No data: {why}, {covered}", withheld=True)
    since = "" if measured.since is None else f", since {day_name(measured.since)}"
    return FigureText(percent(availability, measured.sample), f"{covered}{since}")


def day_text(day: ComponentDay, *, is_today: bool = False) -> str:
    """Returns `down 6 min`, `no downtime, 4 h 20 min not measured`, `maintenance 2 h so far`."""
    split = day.split
    if not split.range_us:
        return BEFORE_SAID
    if not split.measured_us and not split.excluded_us:
        return "not measured"
    parts = [f"down {length(split.bad_us)}"] if split.bad_us else []
    if day.degraded_us:
        parts.append(f"degraded {length(day.degraded_us)}")
    if split.excluded_us:
        parts.append(f"maintenance {length(split.excluded_us)}")
    if split.unknown_us:
        if not parts:
            parts.append("no downtime")
        parts.append(f"{length(split.unknown_us)} not measured")
    said = ", ".join(parts) or "operational, fully measured"
    return f"{said} so far" if is_today else said


def length(us: int) -> str:
    """Returns a duration. A duration below 1 s is `< 1 s`, never zero."""
    return duration(us) if us >= SECOND else f"< 1{GAP}s"


def incident_line(incident: Incident) -> str:
    """Returns `Resolved after 42 min`, or the current status."""
    if incident.resolved_at is None:
        return INCIDENT_STATUS[incident.status]
    return f"Resolved after {length(incident.resolved_at - incident.started_at)}"


def incident_mark(incident: Incident) -> str:
    return "up" if incident.status is IncidentStatus.RESOLVED else open_mark(incident)


def open_mark(incident: Incident) -> str:
    """Returns the mark of the incident while it was open."""
    return _IMPACT_MARK[incident.impact]


POSTMORTEM: Final = "Postmortem"


def update_word(status: IncidentStatus | None) -> str:
    return NOTE if status is None else INCIDENT_STATUS[status]


def is_running(maintenance: Maintenance, now: Instant) -> bool:
    return maintenance.starts_at <= now < maintenance.over_at


def until(at: Instant, now: Instant) -> str:
    """Returns the time of day, preceded by the day if it differs from that of `now`."""
    said = f"{clock(at, seconds=False)} UTC"
    if to_datetime(at).date() == to_datetime(now).date():
        return said
    return f"{day_name(at)}, {said}"


def planned(maintenance: Maintenance, now: Instant) -> str:
    """Returns `Until 15:00 UTC` for running maintenance, else its start and end."""
    if is_running(maintenance, now):
        return f"Until {until(maintenance.over_at, now)}"
    starts = maintenance.starts_at
    return f"{until(starts, now)} to {until(maintenance.over_at, starts)}"


def exactly(at: Instant) -> str:
    """Returns `9 June 2026, 14:12:08 UTC`."""
    return f"{day_name(at)} {to_datetime(at).year}, {clock(at)} UTC"


def dated(at: Instant) -> str:
    """Returns `9 June 2026`."""
    return f"{day_name(at)} {to_datetime(at).year}"
