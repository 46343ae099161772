"""What an incident is shown as: its mark, and how long it lasted, the same on every page."""

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
    """A circle once it is over; a square where it is critical."""
    return "up" if status == IncidentStatus.RESOLVED else _MARKS[IncidentImpact(impact)]


def lasted(started_at: Instant, resolved_at: Instant | None, now: Instant) -> str:
    """How long it has been open, or was."""
    return duration((now if resolved_at is None else resolved_at) - started_at)
