"""Trail "What it led to": the newest outage of a monitor, its incident, pages and answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from ....storage.alerting.queries.console_outages import LastOutage, select_last_outage
from ....storage.alerting.rules.suppression import SuppressionReason
from ....storage.changes.queries.preceding_changes import Preceding, select_preceding
from ....storage.changes.rules.change import last_recorded
from ....storage.core.instant import Instant
from ....storage.engine.pools import Tx
from ....storage.incidents.queries.console_incidents import (
    DeliverySummary,
    Paged,
    select_deliveries,
    select_pages,
)
from ....storage.incidents.queries.incident_updates import select_updates
from ....storage.incidents.queries.incidents import select_incident
from ....storage.incidents.rows import OWN_CHANNELS, IncidentRow, UpdateRow
from ....storage.incidents.rules.incident import IncidentStatus
from ....storage.monitors.rows import MonitorRow
from ...ui.change_text import before, name_of, short
from ...ui.failure_help import failure_sentence
from ...ui.formatting import Moment, count, duration, moment
from .alert_status import HELD

PAGES_MOST: Final = 10
UPDATES_MOST: Final = 5
CHANGES_MOST: Final = 2
DELIVERIES_MOST: Final = 20


@dataclass(frozen=True, slots=True)
class OutageTrail:
    outage: LastOutage
    incident: IncidentRow | None
    updates: Sequence[UpdateRow]
    pages: Sequence[Paged]
    deliveries: Sequence[DeliverySummary]
    changes: Sequence[Preceding]


@dataclass(frozen=True, slots=True)
class TrailEvent:
    """Event of the trail. `link` follows `what`; `rank` orders events of the same instant."""

    at: Instant
    when: Moment
    mark: str
    what: str
    note: str
    rank: int
    link: str = ""
    link_text: str = ""


async def select_trail(tx: Tx, row: MonitorRow, owners: Sequence[UUID]) -> OutageTrail | None:
    """Returns the trail of the newest outage, None if the monitor was never down."""
    outage = await select_last_outage(tx, row.org, row.id, owners)
    if outage is None:
        return None
    incident = await select_incident(tx, outage.incident) if outage.incident else None
    thread = outage.uid if incident is None else incident.uid
    deliveries = await select_deliveries(tx, row.org, thread, DELIVERIES_MOST)
    if incident is None:
        return OutageTrail(outage, None, (), (), deliveries, ())
    return OutageTrail(
        outage,
        incident,
        await select_updates(tx, row.org, incident.id),
        await select_pages(tx, row.org, incident.id, PAGES_MOST),
        deliveries,
        await select_preceding(tx, incident),
    )


def trail_events(trail: OutageTrail, kind: str, now: Instant) -> list[TrailEvent]:
    """Returns the events, newest first. `kind` is the type of the monitor."""
    outage, incident = trail.outage, trail.incident
    note = f"Failed condition: {outage.failed_condition}." if outage.failed_condition else ""
    down = "Down", f"First failure: {failure_sentence(outage.why, kind=kind)}. {note}".strip()
    found = [_event(outage.began_at, now, "down", *down, 1)]
    if outage.ended_at is not None:
        lasted = f"After {duration(outage.ended_at - outage.began_at)}."
        found.append(_event(outage.ended_at, now, "up", "Up again", lasted, 6))
    if outage.announced_at is not None and incident is None:
        told = delivered_text(trail.deliveries) or "No channel was attached."
        found.append(_event(outage.announced_at, now, "pending", "Channels notified", told, 3))
    elif outage.announced_at is None and outage.suppressed_by is not None:
        why = HELD[SuppressionReason(outage.suppressed_by)]
        why = why.format(names="a dependency", causes="a dependency is")
        found.append(_event(outage.began_at, now, "pending", "Not notified", why, 2))
    if incident is not None:
        found += _incident_events(trail, incident, now)
    for one in trail.changes[:CHANGES_MOST]:
        name = short(name_of(one.change, last_recorded([phase.ref for phase in one.phases])))
        said = f"{one.service_name}, {before(one.lag_seconds)}."
        note = f"{said} A change that came before is not proof of a cause."
        found.append(_event(one.change.started_at, now, "change", name, note, 0))
    return sorted(found, key=lambda event: (event.at, event.rank), reverse=True)


def _incident_events(trail: OutageTrail, incident: IncidentRow, now: Instant) -> list[TrailEvent]:
    link = {"link": f"/incidents/{incident.uid}", "link_text": incident.title}
    by = "By a service that pages for this monitor." if incident.service is not None else ""
    opened = incident.created_at
    found = [_event(opened, now, "degraded", "Incident opened:", by, 3, **link)]
    steps = trail.pages if trail.pages else ()
    told = delivered_text(trail.deliveries)
    for paged in steps:
        first = paged is steps[-1]
        found.append(_page_event(paged, told if first else "", now))
    if not steps and told:
        found[0] = _event(opened, now, "degraded", "Incident opened:", f"{by} {told}", 3, **link)
    if incident.acknowledged_at is not None:
        took = f"{duration(incident.acknowledged_at - incident.started_at)} after the start."
        who = incident.acknowledged_label or "An API token"
        found.append(
            _event(incident.acknowledged_at, now, "up", f"{who} acknowledged", took, 5, **link)
        )
    if not steps and not told:
        by = f"{by} No channel was notified."
        found[0] = _event(opened, now, "degraded", "Incident opened:", by, 3, **link)
    for update in trail.updates[1:][-UPDATES_MOST:]:
        resolved = update.status == IncidentStatus.RESOLVED
        what = "Note" if update.status is None else update.status.capitalize()
        who = f"By {update.author_label}." if update.author_label else ""
        mark = "up" if resolved else "pending"
        found.append(_event(update.created_at, now, mark, what, who, 7))
    return found


def _page_event(paged: Paged, told: str, now: Instant) -> TrailEvent:
    names = ", ".join(paged.paged)
    what = f"Notified: {names}" if names else "No channel could be notified"
    step = "Channels of the monitor." if paged.step == OWN_CHANNELS else f"Step {paged.step}."
    lost = f"Not reached: {', '.join(paged.unreachable)}." if paged.unreachable else ""
    mark = "degraded" if lost or not names else "pending"
    note = " ".join(part for part in (step, told, lost) if part)
    return _event(paged.at, now, mark, what, note, 4)


def delivered_text(deliveries: Sequence[DeliverySummary]) -> str:
    """Returns what happened to the messages of each channel, empty without a message."""
    parts = []
    for one in deliveries:
        name = one.channel or "a webhook"
        if one.dead:
            parts.append(f"{name}: {count(one.dead, 'message')} failed")
        elif one.pending:
            parts.append(f"{name}: {count(one.pending, 'message')} waiting")
        else:
            parts.append(f"{name}: delivered")
    return f"{'; '.join(parts)}." if parts else ""


def _event(
    at: Instant,
    now: Instant,
    mark: str,
    what: str,
    note: str,
    rank: int,
    *,
    link: str = "",
    link_text: str = "",
) -> TrailEvent:
    return TrailEvent(at, moment(at, now), mark, what, note.strip(), rank, link, link_text)
