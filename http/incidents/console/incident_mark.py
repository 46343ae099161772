"""Mark and duration of an incident, shared by all screens."""

from ....storage.core.instant import Instant
from ....storage.incidents.rules.incident import IncidentImpact, IncidentStatus
from ...ui.formatting import duration

_MARKS = {
    IncidentImpact.CRITICAL: "down",
    IncidentImpact.MAJOR: "degraded",
    IncidentImpact.MINOR: "degraded",
    IncidentImpact.NONE: "pending",
}


def mark_of(status: str, impact: str) -> str:
    """Returns the mark: a circle if the incident is resolved, a square if it is critical."""
    return "up" if status == IncidentStatus.RESOLVED else _MARKS[IncidentImpact(impact)]


def lasted(started_at: Instant, resolved_at: Instant | None, now: Instant) -> str:
    """Returns the duration up to the resolution, or up to now."""
    return duration((now if resolved_at is None else resolved_at) - started_at)
