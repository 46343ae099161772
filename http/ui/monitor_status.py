"""Mark and word of a monitor status, with the reason for an unknown one.

Pending is distinct from unknown: before the first result, missing data is expected. Afterwards it
is a local failure that must be visible.
"""

from collections.abc import Sequence
from enum import StrEnum

from ...storage.core.instant import Instant
from ...storage.core.time_span import TimeSpan
from ...storage.monitors.queries.monitors import MonitorStatusRow, status_of
from ...storage.monitors.rows import MonitorRow
from ...storage.monitors.rules.monitor import MonitorType
from ...storage.monitors.rules.monitor_state import MonitorStatus
from ...storage.scheduling.rules.maintenance_window import is_in_maintenance


class MonitorStatusText(StrEnum):
    """Status in order of urgency. Each value names its mark."""

    DOWN = "down"
    UNKNOWN = "unknown"
    PENDING = "pending"
    MAINTENANCE = "maint"
    UP = "up"
    PAUSED = "paused"


WORDS = {
    MonitorStatusText.DOWN: "down",
    MonitorStatusText.UNKNOWN: "unknown",
    MonitorStatusText.PENDING: "pending",
    MonitorStatusText.MAINTENANCE: "in maintenance",
    MonitorStatusText.UP: "up",
    MonitorStatusText.PAUSED: "paused",
}
_SENTENCES = {
    MonitorStatusText.DOWN: "{} is down",
    MonitorStatusText.UNKNOWN: "{} is unknown",
    MonitorStatusText.PENDING: "{} is pending",
    MonitorStatusText.MAINTENANCE: "{} is in maintenance",
    MonitorStatusText.UP: "{} is up",
    MonitorStatusText.PAUSED: "{} is paused",
}


def shown(
    row: MonitorRow,
    standing: MonitorStatusRow | None,
    maintenance: Sequence[TimeSpan],
    now: Instant,
) -> MonitorStatusText:
    if not row.enabled:
        return MonitorStatusText.PAUSED
    if is_in_maintenance(now, maintenance):
        return MonitorStatusText.MAINTENANCE
    if standing is None or standing.last_at is None:
        return MonitorStatusText.PENDING
    match status_of(standing, row.type, now):
        case MonitorStatus.UP:
            return MonitorStatusText.UP
        case MonitorStatus.DOWN:
            return MonitorStatusText.DOWN
        case MonitorStatus.PENDING:
            return MonitorStatusText.UNKNOWN


def is_checked(row: MonitorRow) -> bool:
    """Returns whether workers or agents of the monitor's region run checks of it now."""
    return row.enabled and row.type not in (MonitorType.PUSH, MonitorType.COMPOSITE)


def sentence(name: str, state: MonitorStatusText) -> str:
    return _SENTENCES[state].format(name)


def recovery_sentence(successes: int, recovery_threshold: int) -> str:
    """Returns how far a DOWN monitor whose last check succeeded has recovered."""
    return f"Recovering: {successes} of {recovery_threshold} consecutive successes."
