"""Texts of a status page, shared by its HTML and its feeds.

The texts state only data of the page. An unmeasured component is never operational, and an open
incident is always mentioned.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from ....storage.core.availability import Withheld
from ....storage.core.instant import Instant, to_datetime
from ....storage.incidents.rules.incident import IncidentImpact, IncidentStatus
from ....storage.status_pages.rules.page_language import ENGLISH
from ....storage.status_pages.rules.status_page import (
    Component,
    ComponentDay,
    ComponentStatus,
    Incident,
    Maintenance,
    Page,
    PageSummaryState,
)
from ...ui.formatting import NOTHING, clock
from .language import (
    coverage,
    dated,
    day,
    duration,
    listed,
    many,
    number,
    percent,
    phrase,
    texts_of,
)

# For screens of the console, which are English.
STATUS: Final = {one: texts_of(ENGLISH)[f"status.{one.value}"] for one in ComponentStatus}
MARK: Final = {
    ComponentStatus.OPERATIONAL: "up",
    ComponentStatus.DEGRADED: "degraded",
    ComponentStatus.PARTIAL_OUTAGE: "degraded",
    ComponentStatus.MAJOR_OUTAGE: "down",
    ComponentStatus.MAINTENANCE: "maint",
    ComponentStatus.NO_DATA: "unknown",
}
_IMPACT_MARK: Final = {
    IncidentImpact.NONE: "pending",
    IncidentImpact.MINOR: "degraded",
    IncidentImpact.MAJOR: "degraded",
    IncidentImpact.CRITICAL: "down",
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


def status_word(status: ComponentStatus) -> str:
    return phrase(f"status.{status.value}")


def withheld_word(why: Withheld) -> str:
    return phrase(f"withheld.{why.value}")


def status_line(page: Page) -> StatusLine:
    """Returns the first line: the worst trouble, then open incidents, then the rest."""
    status = page.summary.status
    if status in _TROUBLE:
        return StatusLine(MARK[status], status_word(status))
    if page.active:
        worst = max(page.active, key=lambda one: _IMPACTS.index(one.impact))
        text = page.active[0].title
        if len(page.active) > 1:
            text = phrase("line.open_incidents", n=number(len(page.active)))
        return StatusLine(_IMPACT_MARK[worst.impact], text)
    match page.summary.state:
        case PageSummaryState.EMPTY:
            return StatusLine("pending", phrase("line.empty"))
        case PageSummaryState.NO_DATA:
            return StatusLine("unknown", phrase("line.no_data"))
        case PageSummaryState.OPERATIONAL if page.summary.unmeasured:
            return StatusLine("up", phrase("line.all_measured"))
        case PageSummaryState.OPERATIONAL:
            return StatusLine("up", phrase("line.all"))
        case PageSummaryState.IMPAIRED:
            return StatusLine("maint", _planned(page))


_IMPACTS: Final = list(IncidentImpact)


def _planned(page: Page) -> str:
    """Returns the maintenance text, with the latest end of running maintenance."""
    ends = [one.over_at for one in page.maintenance if is_running(one, page.updated_at)]
    if not ends:
        return phrase("line.planned")
    return phrase("line.planned_until", until=until(max(ends), page.updated_at))


def line_beneath(page: Page) -> str:
    """Returns the number of operational components, and what the others have."""
    components = page.components
    if len(components) < 2:
        return "".join(f"{_named([one.name], one.status)}." for one in components)
    if page.summary.state is PageSummaryState.NO_DATA:
        return phrase("line.without_data", n=0, all=number(len(components)))
    first = _how_many_work(components)
    clauses: list[str] = []
    for status in (*_TROUBLE, ComponentStatus.MAINTENANCE, ComponentStatus.NO_DATA):
        names = [one.name for one in components if one.status is status]
        if names:
            clauses.append(_clause(names, status))
    return f"{first} {listed(clauses)}." if clauses else first


def _how_many_work(components: Sequence[Component]) -> str:
    works = sum(one.status is ComponentStatus.OPERATIONAL for one in components)
    return phrase("line.operational", n=number(works), all=number(len(components)))


def _clause(names: Sequence[str], status: ComponentStatus) -> str:
    """Returns a clause with a few names, or with a number, always for components without data."""
    if len(names) <= _NAMED_MOST and status is not ComponentStatus.NO_DATA:
        return _named(names, status)
    return many("line.components", len(names), being=_being(len(names), status))


def _named(names: Sequence[str], status: ComponentStatus) -> str:
    return phrase("line.named", names=listed(names), being=_being(len(names), status))


def _being(n: int, status: ComponentStatus) -> str:
    return phrase(f"being.{status.value}.{'one' if n == 1 else 'other'}")


def why_no_data(component: Component) -> str:
    """Returns the reason for missing data, empty if the component has data."""
    return "" if component.reason is None else phrase(f"reason.{component.reason.value}")


def figure_of(component: Component) -> FigureText | None:
    """Returns the availability with its coverage, None for a component without measurement."""
    measured = component.measured
    if measured is None:
        return None
    covered = phrase("figure.coverage", share=coverage(Fraction(str(measured.figure.coverage))))
    availability = measured.split.availability()
    if component.withheld is not None or availability is None:
        why = withheld_word(component.withheld or Withheld.NOTHING_MEASURED)
        return FigureText(NOTHING, f"{phrase('no_data', why=why)}, {covered}", withheld=True)
    since = "" if measured.since is None else f", {phrase('figure.since', day=day(measured.since))}"
    return FigureText(percent(availability, measured.sample), f"{covered}{since}")


def day_text(of: ComponentDay, *, is_today: bool = False) -> str:
    """Returns `down 6 min`, `no downtime, 4 h 20 min not measured`, `maintenance 2 h so far`."""
    split = of.split
    if not split.range_us:
        return phrase("day.before")
    if not split.measured_us and not split.excluded_us:
        return phrase("day.not_measured")
    parts = [phrase("day.down", length=duration(split.bad_us))] if split.bad_us else []
    if of.degraded_us:
        parts.append(phrase("day.degraded", length=duration(of.degraded_us)))
    if split.excluded_us:
        parts.append(phrase("day.maintenance", length=duration(split.excluded_us)))
    if split.unknown_us:
        if not parts:
            parts.append(phrase("day.no_downtime"))
        parts.append(phrase("day.unknown", length=duration(split.unknown_us)))
    said = ", ".join(parts) or phrase("day.good")
    return phrase("day.so_far", said=said) if is_today else said


def incident_line(incident: Incident) -> str:
    """Returns `Resolved after 42 min`, or the current status."""
    if incident.resolved_at is None:
        return phrase(f"incident.{incident.status.value}")
    return phrase(
        "incident.resolved_after", length=duration(incident.resolved_at - incident.started_at)
    )


def incident_mark(incident: Incident) -> str:
    return "up" if incident.status is IncidentStatus.RESOLVED else open_mark(incident)


def open_mark(incident: Incident) -> str:
    """Returns the mark of the incident while it was open."""
    return _IMPACT_MARK[incident.impact]


def update_word(status: IncidentStatus | None) -> str:
    return phrase(f"incident.{'note' if status is None else status.value}")


def is_running(maintenance: Maintenance, now: Instant) -> bool:
    return maintenance.starts_at <= now < maintenance.over_at


def until(at: Instant, now: Instant) -> str:
    """Returns the time of day, preceded by the day if it differs from that of `now`."""
    said = f"{clock(at, seconds=False)} UTC"
    if to_datetime(at).date() == to_datetime(now).date():
        return said
    return f"{day(at)}, {said}"


def planned(maintenance: Maintenance, now: Instant) -> str:
    """Returns `Until 15:00 UTC` for running maintenance, else its start and end."""
    if is_running(maintenance, now):
        return phrase("planned.until", until=until(maintenance.over_at, now))
    starts = maintenance.starts_at
    return phrase(
        "planned.range", **{"from": until(starts, now), "to": until(maintenance.over_at, starts)}
    )


def exactly(at: Instant) -> str:
    """Returns `9 June 2026, 14:12:08 UTC`."""
    return f"{dated(at)}, {clock(at)} UTC"
