"""What a monitor is shown as, in a mark and a word: the status, and why there may be none.

Unknown and pending are told apart: before the first result nobody expects to know; after it, not to
know is a fault of ours that has to be seen.
"""

from collections.abc import Sequence
from enum import StrEnum

from ...storage.core.instant import Instant
from ...storage.core.time_span import Span
from ...storage.monitors.queries.monitors import Standing, status_of
from ...storage.monitors.rows import MonitorRow
from ...storage.monitors.rules.monitor_state import Status
from ...storage.scheduling.rules.maintenance_window import is_in_maintenance


class Shown(StrEnum):
    """In the order in which they want attention; each value names its mark."""

    DOWN = "down"
    UNKNOWN = "unknown"
    PENDING = "pending"
    MAINTENANCE = "maint"
    UP = "up"
    PAUSED = "paused"


WORDS = {
    Shown.DOWN: "down",
    Shown.UNKNOWN: "unknown",
    Shown.PENDING: "waiting",
    Shown.MAINTENANCE: "in maintenance",
    Shown.UP: "up",
    Shown.PAUSED: "paused",
}
_SENTENCES = {
    Shown.DOWN: "{} is down",
    Shown.UNKNOWN: "{} is unknown",
    Shown.PENDING: "{} waits for its first result",
    Shown.MAINTENANCE: "{} is in maintenance",
    Shown.UP: "{} is up",
    Shown.PAUSED: "{} is paused",
}


def shown(
    row: MonitorRow, standing: Standing | None, maintenance: Sequence[Span], now: Instant
) -> Shown:
    if not row.enabled:
        return Shown.PAUSED
    if is_in_maintenance(now, maintenance):
        return Shown.MAINTENANCE
    if standing is None or standing.last_at is None:
        return Shown.PENDING
    match status_of(standing, row.type, now):
        case Status.UP:
            return Shown.UP
        case Status.DOWN:
            return Shown.DOWN
        case Status.PENDING:
            return Shown.UNKNOWN


def sentence(name: str, state: Shown) -> str:
    return _SENTENCES[state].format(name)
