"""Status page in the JSON format of the Atlassian Statuspage API v2.

States without an equivalent keep the values of Leadline: a component without data is `no_data`, and
a page without data has the indicator `unknown`. Neither is ever operational.
"""

from collections.abc import Sequence
from typing import Any, Final

from ....storage.core.instant import Instant, to_text
from ....storage.incidents.rules.incident import IncidentImpact, IncidentStatus
from ....storage.status_pages.rules.status_page import (
    Component,
    ComponentStatus,
    Incident,
    Maintenance,
    Page,
    PageSummaryState,
)
from . import page_text as words
from .language import phrase
from .urls import Addresses

_STATUS: Final = {
    ComponentStatus.OPERATIONAL: "operational",
    ComponentStatus.DEGRADED: "degraded_performance",
    ComponentStatus.PARTIAL_OUTAGE: "partial_outage",
    ComponentStatus.MAJOR_OUTAGE: "major_outage",
    ComponentStatus.MAINTENANCE: "under_maintenance",
    ComponentStatus.NO_DATA: "no_data",
}
_INDICATOR: Final = {
    ComponentStatus.OPERATIONAL: "none",
    ComponentStatus.MAINTENANCE: "maintenance",
    ComponentStatus.DEGRADED: "minor",
    ComponentStatus.PARTIAL_OUTAGE: "major",
    ComponentStatus.MAJOR_OUTAGE: "critical",
}
_IMPACT_INDICATOR: Final = {
    IncidentImpact.NONE: "none",
    IncidentImpact.MINOR: "minor",
    IncidentImpact.MAJOR: "major",
    IncidentImpact.CRITICAL: "critical",
}
_INDICATORS: Final = ("none", "maintenance", "minor", "major", "critical")

Body = dict[str, Any]


def summary(page: Page, addresses: Addresses) -> Body:
    active = [one for one in page.active if one.status is not IncidentStatus.RESOLVED]
    return {
        **status(page, addresses),
        **components(page, addresses),
        "incidents": [_incident(page, one) for one in active],
        "scheduled_maintenances": [_maintenance(page, one) for one in page.maintenance],
    }


def status(page: Page, addresses: Addresses) -> Body:
    said = {"indicator": indicator(page), "description": words.status_line(page).text}
    return {"page": _page_json(page, addresses), "status": said}


def components(page: Page, addresses: Addresses) -> Body:
    found = [_component(page, one, n) for n, one in enumerate(page.components, 1)]
    return {"page": _page_json(page, addresses), "components": found}


def incidents(page: Page, addresses: Addresses) -> Body:
    """Returns the open incidents and the newest resolved incidents."""
    found = [_incident(page, one) for one in [*page.active, *page.recent]]
    return {"page": _page_json(page, addresses), "incidents": found}


def unresolved(page: Page, addresses: Addresses) -> Body:
    found = [_incident(page, one) for one in page.active]
    return {"page": _page_json(page, addresses), "incidents": found}


def scheduled(page: Page, addresses: Addresses) -> Body:
    return _maintenances(page, addresses, page.maintenance)


def upcoming(page: Page, addresses: Addresses) -> Body:
    found = [one for one in page.maintenance if not words.is_running(one, page.updated_at)]
    return _maintenances(page, addresses, found)


def running(page: Page, addresses: Addresses) -> Body:
    found = [one for one in page.maintenance if words.is_running(one, page.updated_at)]
    return _maintenances(page, addresses, found)


def indicator(page: Page) -> str:
    """Returns the worst of components and open incidents, `unknown` if neither has data."""
    if page.summary.state in (PageSummaryState.EMPTY, PageSummaryState.NO_DATA) and not page.active:
        return "unknown"
    said = [_IMPACT_INDICATOR[one.impact] for one in page.active]
    if page.summary.status is not ComponentStatus.NO_DATA:
        said.append(_INDICATOR[page.summary.status])
    return max(said, key=_INDICATORS.index)


def _page_json(page: Page, addresses: Addresses) -> Body:
    return {
        "id": page.slug,
        "name": page.title,
        "url": addresses.page,
        "time_zone": "Etc/UTC",
        "updated_at": to_text(page.updated_at),
    }


def _component(page: Page, one: Component, position: int) -> Body:
    return {
        "id": str(one.uid),
        "name": one.name,
        "status": _STATUS[one.status],
        # Instant of the rendered state.
        "updated_at": to_text(page.updated_at),
        "position": position,
        "description": one.description or None,
        "showcase": False,
        "group_id": None,
        "group": False,
        "page_id": page.slug,
        "only_show_if_degraded": False,
    }


def _incident(page: Page, one: Incident) -> Body:
    return {
        "id": str(one.uid),
        "name": one.title,
        "status": one.status.value,
        "impact": one.impact.value,
        "created_at": to_text(one.created_at),
        "started_at": to_text(one.started_at),
        "updated_at": to_text(one.updated_at),
        "monitoring_at": _first(one, IncidentStatus.MONITORING),
        "resolved_at": _text(one.resolved_at),
        "page_id": page.slug,
        "incident_updates": _updates(one),
    }


def _updates(one: Incident) -> list[Body]:
    """Returns the updates, newest first. A note has the status at its time.

    A published postmortem is an update with the status `postmortem`, as in the format.
    """
    found: list[Body] = []
    stands = IncidentStatus.INVESTIGATING
    for update in one.updates:
        stands = update.status or stands
        at = to_text(update.created_at)
        found.append(_update(one, str(update.seq), stands.value, update.body, at, at))
    if one.postmortem is not None:
        at, changed = to_text(one.postmortem.published_at), to_text(one.postmortem.updated_at)
        found.append(_update(one, "postmortem", "postmortem", one.postmortem.body, at, changed))
    return found[::-1]


def _update(one: Incident, name: str, status: str, text: str, at: str, changed: str) -> Body:
    return {
        "id": f"{one.uid}-{name}",
        "incident_id": str(one.uid),
        "status": status,
        "body": text,
        "created_at": at,
        "updated_at": changed,
        "display_at": at,
    }


def _maintenances(page: Page, addresses: Addresses, found: Sequence[Maintenance]) -> Body:
    shown = [_maintenance(page, one) for one in found]
    return {"page": _page_json(page, addresses), "scheduled_maintenances": shown}


def _maintenance(page: Page, one: Maintenance) -> Body:
    is_running = words.is_running(one, page.updated_at)
    about = set(one.components)
    return {
        # Maintenance has no public id. Page, start and end identify it.
        "id": f"{page.slug}-{one.starts_at}-{one.over_at}",
        "name": one.reason or phrase("line.planned"),
        "status": "in_progress" if is_running else "scheduled",
        "impact": "maintenance",
        "scheduled_for": to_text(one.starts_at),
        "scheduled_until": to_text(one.over_at),
        "page_id": page.slug,
        "incident_updates": [],
        "components": [
            _component(page, each, n)
            for n, each in enumerate(page.components, 1)
            if each.uid in about
        ],
    }


def _first(one: Incident, wanted: IncidentStatus) -> str | None:
    return next((to_text(u.created_at) for u in one.updates if u.status is wanted), None)


def _text(at: Instant | None) -> str | None:
    return None if at is None else to_text(at)


# By the path after /api/v2/.
FORMS: Final = {
    "summary.json": summary,
    "status.json": status,
    "components.json": components,
    "incidents.json": incidents,
    "incidents/unresolved.json": unresolved,
    "scheduled-maintenances.json": scheduled,
    "scheduled-maintenances/upcoming.json": upcoming,
    "scheduled-maintenances/active.json": running,
}
