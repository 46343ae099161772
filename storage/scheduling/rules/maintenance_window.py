"""Maintenance of runs: announced time that counts neither as up nor as down.

A probe window is judged by its due instant. A push window ends later and is judged by its end. A
maintenance includes its start and excludes its end.
"""

from collections.abc import Sequence
from typing import Final

from ...core.instant import DAY, MINUTE, Instant
from ...core.time_span import TimeSpan, holding
from .run_schedule import ResultMode, RunWindow, result_expected_by

LONGEST_US: Final = 366 * DAY
AHEAD_MOST_US: Final = 2 * 366 * DAY
REASON_LONGEST: Final = 500
# Validity of a preview.
PREVIEW_US: Final = 10 * MINUTE


def is_in_maintenance(instant: Instant, spans: Sequence[TimeSpan]) -> bool:
    return holding(spans, instant) is not None


def withholds(window: RunWindow, manner: ResultMode, spans: Sequence[TimeSpan]) -> bool:
    judged_at = result_expected_by(window, manner) if manner is ResultMode.PUSH else window.due
    return is_in_maintenance(judged_at, spans)


def plan_fault(
    starts_at: Instant, ends_at: Instant, reason: str, now: Instant
) -> tuple[str, str] | None:
    """Returns the field and the rule that an announcement breaks, None if it is valid."""
    if ends_at <= starts_at:
        return "ends_at", "must be after starts_at"
    if ends_at - starts_at > LONGEST_US:
        return "ends_at", f"must be at most {LONGEST_US // DAY} days after starts_at"
    if starts_at > now + AHEAD_MOST_US:
        return "starts_at", f"must be at most {AHEAD_MOST_US // DAY} days ahead"
    if len(reason) > REASON_LONGEST:
        return "reason", f"must be at most {REASON_LONGEST} characters"
    return None
