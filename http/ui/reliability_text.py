"""Texts of service figures, uniform on all screens: availability and remaining budget.

A percentage has its coverage. A withheld figure is a dash with the reason.
"""

from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from ...storage.core.availability import (
    BUDGET_LEAST_MEASURED_US,
    OBJECTIVE_SCALE,
    ErrorBudget,
    Withheld,
    allowed_us,
    budget,
)
from ...storage.core.instant import DAY, HOUR, MINUTE, SECOND
from ...storage.core.sli import Split
from ...storage.services.queries.service_health import HealthNow
from ...storage.services.rules.service_health import Health, ServiceHealthState
from ...storage.services.rules.service_report import ReportWindow, ServiceReportStatus
from .formatting import COVERAGE_SAMPLE, GAP, NOTHING, coverage, day, percent

WHY: Final = {
    Withheld.NO_SLI: "no SLI members",
    Withheld.NOTHING_SEALED: "nothing recorded yet",
    Withheld.NOTHING_MEASURED: "not measured",
    Withheld.WINDOW_PRECEDES_MATERIALIZATION_ERA: "defined later than the window",
    Withheld.STORAGE_GAP: "stored data is incomplete",
    Withheld.NOT_SEALED_YET: "not complete yet",
    Withheld.EDGE_NOT_STORED: "the edges of the month are not stored",
    Withheld.ZERO_DECIDABLE_TIME: "only maintenance",
    Withheld.DECIDABLE_COVERAGE_BELOW_MIN: "coverage below 90 %",
    Withheld.SPANS_DEFINITION_REVISIONS: "definition changed",
}
LABELS: Final = {"24h": "24 hours", "7d": "7 days", "30d": "30 days", "90d": "90 days"}
# Windows in order of preference. A list shows the first window with an objective.
_FIRST: Final = ("30d", "90d", "7d", "24h")
_MARKS: Final = {
    Health.HEALTHY: "up",
    Health.DEGRADED: "degraded",
    Health.DOWN: "down",
    Health.UNKNOWN: "unknown",
}


@dataclass(frozen=True, slots=True)
class ReliabilityText:
    """Figure with its note. A withheld figure is a dash, with the reason as the note."""

    text: str
    note: str
    withheld: bool = False


def mark_of(health: HealthNow) -> str:
    if health.revision is None:
        return "pending"
    state = health.state
    if state is None:
        return "unknown"
    return "maint" if state.health is None else _MARKS[state.health]


def word_of(health: HealthNow) -> str:
    if health.revision is None:
        return "no declaration"
    if health.state is None:
        return "no SLI members"
    return state_word(health.state)


def state_word(state: ServiceHealthState) -> str:
    if state.health is None:
        return "in maintenance"
    return str(state.health.value)


def window_shown(targets: Collection[str]) -> str:
    return next((window for window in _FIRST if window in targets), "30d")


def availability(window: ReportWindow) -> ReliabilityText:
    """Returns the availability with its coverage, and its start if the history is too short."""
    if window.availability is None:
        return ReliabilityText(NOTHING, f"No data: {why(window.aggregate_withheld)}", withheld=True)
    note = f"coverage {coverage(window.coverage)}"
    if window.status is ServiceReportStatus.INSUFFICIENT_HISTORY:
        note += f", since {since(window)}"
    return ReliabilityText(percent(window.availability, sample_of(window)), note)


def since(window: ReportWindow) -> str:
    """Returns the first day of a shortened window."""
    return day(window.from_)


def sample_of(window: ReportWindow) -> int:
    """Returns the measured minutes, which define the digits of the figure."""
    return window.durations.split.measured_us // MINUTE


def budget_left(window: ReportWindow, objective: int | None) -> ReliabilityText:
    """Returns the remaining budget as a duration, and as a share."""
    if objective is not None and window.aggregate_withheld is not None:
        return ReliabilityText(NOTHING, f"No data: {why(window.aggregate_withheld)}", withheld=True)
    return budget_of(window.durations.split, objective)


def budget_of(split: Split, objective: int | None) -> ReliabilityText:
    """Returns the remaining budget for any measured time."""
    if objective is None:
        return ReliabilityText("", "no objective")
    found = budget(split, objective)
    if isinstance(found, Withheld):
        return ReliabilityText(NOTHING, f"No data: {_short(found, split)}", withheld=True)
    allowed = allowed_us(split, objective)
    left = allowed - split.bad_us
    if left <= 0:
        over = precisely(int(-left))
        return ReliabilityText(f"0{GAP}s", f"{over} over the budget of {precisely(int(allowed))}")
    share = percent(left / allowed, COVERAGE_SAMPLE)
    return ReliabilityText(precisely(int(left)), f"{share} of {precisely(int(allowed))}")


def left_share(window: ReportWindow, objective: int | None) -> Fraction | None:
    """Returns the share of the budget that is left, negative if overdrawn, None if withheld."""
    if objective is None or not isinstance(window.budget(objective), ErrorBudget):
        return None
    allowed = allowed_us(window.durations.split, objective)
    return (allowed - window.durations.split.bad_us) / allowed


def verdict_text(window: ReportWindow, objective: int | None) -> str:
    """Returns whether the objective is met, empty if this is unknown."""
    if objective is None:
        return ""
    found = window.budget(objective)
    if isinstance(found, Withheld):
        return ""
    return "objective met" if found.met else "objective missed"


def why(reason: Withheld | None) -> str:
    return WHY.get(reason, "unknown reason") if reason is not None else "unknown reason"


def _short(reason: Withheld, split: Split) -> str:
    if reason is not Withheld.DECIDABLE_COVERAGE_BELOW_MIN:
        return why(reason)
    if split.measured_us < BUDGET_LEAST_MEASURED_US:
        return "less than 1 h measured"
    return f"coverage {coverage(split.coverage())}, 90% required"


def objective_text(objective: int) -> str:
    """Returns the objective with all its decimals."""
    whole, rest = divmod(objective, OBJECTIVE_SCALE)
    decimals = f"{rest:04}".rstrip("0")
    return f"{whole}.{decimals}%" if decimals else f"{whole}%"


def precisely(us: int) -> str:
    """Returns the two largest units of a duration, truncated: 8 min 44 s."""
    seconds = max(us, 0) // SECOND
    if not seconds and us > 0:
        return f"< 1{GAP}s"
    parts: list[str] = []
    for length, unit in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s")):
        many, seconds = divmod(seconds, length // SECOND)
        if many or parts:
            parts.append(f"{many}{GAP}{unit}" if many else "")
        if len(parts) == 2:
            break
    return " ".join(part for part in parts if part) or f"0{GAP}s"
