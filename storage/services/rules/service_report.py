"""Report of a service over a window: durations, figures, and reasons for withheld figures.

The API, the console, status pages and the gate take all figures of a service from this module. A
window ends at the watermark. If the service's time begins within it, the window is shorter and its
status shows this. If sealed minutes are missing, sums are withheld.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Final
from uuid import UUID

from ...core.availability import (
    BUDGET_LEAST_COVERAGE,
    BURN_LEAST_COVERAGE,
    ErrorBudget,
    Withheld,
    budget,
    burn_rate,
)
from ...core.instant import DAY, HOUR, MINUTE, Instant
from .service_health import Durations

WINDOWS: Final = {"24h": DAY, "7d": 7 * DAY, "30d": 30 * DAY, "90d": 90 * DAY}


class ServiceReportStatus(StrEnum):
    OK = "ok"
    PARTIAL = "partial"
    UNAVAILABLE = "unavailable"
    INSUFFICIENT_HISTORY = "insufficient_history"
    INSUFFICIENT_SEALED_COVERAGE = "insufficient_sealed_coverage"


@dataclass(frozen=True, slots=True)
class Segment:
    """Part of a window under one revision and epoch. `epoch` is its number."""

    revision: int
    revision_uid: UUID
    epoch: int
    epoch_uid: UUID
    from_: Instant
    to: Instant
    minutes: int
    durations: Durations
    is_reconstruction: bool


@dataclass(frozen=True, slots=True)
class ReportWindow:
    """Report of one window.

    `sealed_through` is None before the first declaration. `reason` states why `availability` or the
    budget is withheld.
    """

    window: str
    sealed_through: Instant | None
    from_: Instant
    to: Instant
    status: ServiceReportStatus
    reason: Withheld | None
    expected_minutes: int
    sealed_minutes: int
    is_continuous: bool
    durations: Durations
    availability: Fraction | None
    coverage: Fraction
    aggregate_withheld: Withheld | None
    segments: Sequence[Segment]

    def budget(self, objective: int) -> ErrorBudget | Withheld:
        """Returns the error budget. `objective` is the objective × 10⁴."""
        if self.aggregate_withheld is not None:
            return self.aggregate_withheld
        return budget(self.durations.split, objective)


@dataclass(frozen=True, slots=True)
class BurnWindow:
    """Window of a burn rule. `rate` is None if it cannot be computed."""

    window_us: int
    status: ServiceReportStatus
    reason: Withheld | None
    expected_minutes: int
    sealed_minutes: int
    is_continuous: bool
    coverage: Fraction
    rate: Fraction | None

    @property
    def window(self) -> str:
        return spelt(self.window_us)


def spelt(us: int) -> str:
    """Returns a duration in the largest unit that divides it: `5m`, `1h`, `7d`."""
    for unit, name in ((DAY, "d"), (HOUR, "h"), (MINUTE, "m")):
        if us % unit == 0:
            return f"{us // unit}{name}"
    return f"{us // 1_000_000}s"


def whole_minutes(length_us: int) -> int:
    """Returns the duration rounded down to minutes, the unit of sealing."""
    return length_us - length_us % MINUTE


def window_of(
    window: str,
    now: Instant,
    has_sli: bool,
    start: Instant | None,
    sealed_through: Instant | None,
    segments: Sequence[Segment],
) -> ReportWindow:
    """Returns the report of a window.

    Args:
        start: start of the service's time.
        segments: all sealed time of the window.
    """
    length = WINDOWS[window]
    expected = length // MINUTE
    if start is None or sealed_through is None or sealed_through <= start:
        why = Withheld.NOTHING_SEALED if has_sli else Withheld.NO_SLI
        at = now if sealed_through is None else sealed_through
        return _nothing(window, sealed_through, at, expected, why)
    from_ = max(Instant(sealed_through - length), start)
    durations = sum((each.durations for each in segments), Durations())
    minutes = sum(each.minutes for each in segments)
    continuous = minutes == (sealed_through - from_) // MINUTE
    split = durations.split
    withheld = _withheld(durations, continuous=continuous)
    availability = None if withheld else split.availability()
    coverage = split.coverage() or Fraction(0)
    status, reason = _standing(
        shortened=from_ > sealed_through - length,
        continuous=continuous,
        enough=coverage >= BUDGET_LEAST_COVERAGE,
    )
    return ReportWindow(
        window=window,
        sealed_through=sealed_through,
        from_=from_,
        to=sealed_through,
        status=status,
        reason=withheld or reason,
        expected_minutes=expected,
        sealed_minutes=minutes,
        is_continuous=continuous,
        durations=durations,
        availability=availability,
        coverage=coverage,
        aggregate_withheld=withheld,
        segments=segments,
    )


def burn_of(
    window_us: int,
    objective: int,
    start: Instant | None,
    sealed_through: Instant | None,
    minutes: int,
    durations: Durations,
) -> BurnWindow:
    """Returns the burn window of whole minutes that ends at the watermark."""
    length_us = whole_minutes(window_us)
    expected = length_us // MINUTE
    if start is None or sealed_through is None or sealed_through <= start:
        why = Withheld.NOTHING_SEALED
        return BurnWindow(
            window_us, ServiceReportStatus.UNAVAILABLE, why, expected, 0, False, Fraction(0), None
        )
    covered = sealed_through - max(Instant(sealed_through - length_us), start)
    continuous = minutes == covered // MINUTE
    coverage = durations.split.coverage() or Fraction(0)
    withheld = _withheld(durations, continuous=continuous)
    if withheld is None and coverage < BURN_LEAST_COVERAGE:
        withheld = Withheld.DECIDABLE_COVERAGE_BELOW_MIN
    status, reason = _standing(
        shortened=covered < length_us,
        continuous=continuous,
        enough=coverage >= BURN_LEAST_COVERAGE,
    )
    return BurnWindow(
        window_us,
        status,
        withheld or reason,
        expected,
        minutes,
        continuous,
        coverage,
        None if withheld else burn_rate(durations.split, objective),
    )


def _nothing(
    window: str, sealed_through: Instant | None, at: Instant, expected: int, why: Withheld
) -> ReportWindow:
    return ReportWindow(
        window=window,
        sealed_through=sealed_through,
        from_=at,
        to=at,
        status=ServiceReportStatus.UNAVAILABLE,
        reason=why,
        expected_minutes=expected,
        sealed_minutes=0,
        is_continuous=False,
        durations=Durations(),
        availability=None,
        coverage=Fraction(0),
        aggregate_withheld=why,
        segments=(),
    )


def _withheld(durations: Durations, *, continuous: bool) -> Withheld | None:
    """Returns why sums are withheld, None if they are not."""
    split = durations.split
    if not continuous:
        return Withheld.STORAGE_GAP
    if split.measured_us:
        return None
    decidable = split.range_us - split.excluded_us
    return Withheld.NOTHING_MEASURED if decidable else Withheld.ZERO_DECIDABLE_TIME


def _standing(
    *, shortened: bool, continuous: bool, enough: bool
) -> tuple[ServiceReportStatus, Withheld | None]:
    """Returns the first deficiency of the window as status and reason."""
    if not continuous:
        return ServiceReportStatus.PARTIAL, Withheld.STORAGE_GAP
    if shortened:
        return (
            ServiceReportStatus.INSUFFICIENT_HISTORY,
            Withheld.WINDOW_PRECEDES_MATERIALIZATION_ERA,
        )
    if not enough:
        return (
            ServiceReportStatus.INSUFFICIENT_SEALED_COVERAGE,
            Withheld.DECIDABLE_COVERAGE_BELOW_MIN,
        )
    return ServiceReportStatus.OK, None
