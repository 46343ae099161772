"""Computation of figures from splits: the same functions for status page, feed, API and gate.

Arithmetic is exact on whole microseconds and on the objective × 10⁴; a number becomes a float only
in the output. A withheld figure is None with its reason, never an estimate.
"""

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from math import nextafter

from .instant import HOUR
from .sli import Split

BUDGET_LEAST_MEASURED_US = HOUR
BUDGET_LEAST_COVERAGE = Fraction(9, 10)
BURN_LEAST_COVERAGE = Fraction(1, 2)
# An objective in percent with four decimals, as a whole number.
OBJECTIVE_SCALE = 10_000
WHOLE = 100 * OBJECTIVE_SCALE


class Withheld(StrEnum):
    """Reasons for a withheld figure, as on the wire."""

    NO_SLI = "no_sli"
    NOTHING_SEALED = "nothing_sealed"
    NOTHING_MEASURED = "nothing_measured"
    WINDOW_PRECEDES_MATERIALIZATION_ERA = "window_precedes_materialization_era"
    STORAGE_GAP = "storage_gap"
    # Of months that are over: a part is not sealed, or an edge within an hour needs results that
    # are packed or deleted.
    NOT_SEALED_YET = "not_sealed_yet"
    EDGE_NOT_STORED = "edge_not_stored"
    ZERO_DECIDABLE_TIME = "zero_decidable_time"
    DECIDABLE_COVERAGE_BELOW_MIN = "decidable_coverage_below_min"
    SPANS_DEFINITION_REVISIONS = "spans_definition_revisions"


@dataclass(frozen=True, slots=True)
class Availability:
    """An availability with its coverage.

    `withheld_reason` is set exactly if the percentage is None.
    """

    uptime_percent: float | None
    coverage: float
    withheld_reason: Withheld | None


@dataclass(frozen=True, slots=True)
class ErrorBudget:
    """An error budget. The ratios are shares of the measured time, not of the budget."""

    objective: float
    allowed_downtime_ratio: float
    actual_downtime_ratio: float
    remaining_ratio: float
    burned_percent: float
    met: bool
    exhausted: bool


def figure(split: Split, *, sealed: bool = True) -> Availability:
    """Returns the figure of a split. `sealed` is False if no part of the range is sealed."""
    availability = split.availability()
    coverage = float(split.coverage() or 0)
    if not sealed:
        return Availability(None, coverage, Withheld.NOTHING_SEALED)
    if availability is None:
        return Availability(None, coverage, Withheld.NOTHING_MEASURED)
    return Availability(percent(availability), coverage, None)


# Most days are good throughout, and many of the others have equal splits.
@lru_cache(maxsize=8_192)
def uptime_percent(split: Split) -> float | None:
    """Returns the uptime of the measured time, as `figure` does."""
    if not split.bad_us:
        return 100.0 if split.good_us else None
    return percent(Fraction(split.good_us, split.measured_us))


def percent(ratio: Fraction) -> float:
    """Returns 100 only for the ratio 1 and 0 only for 0, even if a float would round to them."""
    value = float(100 * ratio)
    if value == 100 and ratio < 1:
        return nextafter(100, 0)
    return nextafter(0, 1) if value == 0 and ratio > 0 else value


def objective_e4(percent: float | str | Decimal) -> int | None:
    """Returns an objective in units of 10⁻⁴ percent, rounded half up; None outside (0, 100)."""
    try:
        value = Decimal(str(percent))
    except ArithmeticError:
        return None
    if not value.is_finite() or not 0 < value < 100:
        return None
    scaled = int((value * OBJECTIVE_SCALE).to_integral_value(ROUND_HALF_UP))
    return scaled if 0 < scaled < WHOLE else None


def allowed_us(split: Split, objective: int) -> Fraction:
    """Returns (1 − objective) × (good + bad), exactly. The objective is × 10⁴."""
    return Fraction((WHOLE - objective) * split.measured_us, WHOLE)


def is_exhausted(split: Split, objective: int) -> bool:
    """Returns whether bad ≥ allowed. Without measured time no budget exists to exhaust."""
    return bool(split.measured_us) and split.bad_us >= allowed_us(split, objective)


def budget(split: Split, objective: int) -> ErrorBudget | Withheld:
    """Returns the budget of a window; withheld if too little time was measured."""
    if not split.measured_us:
        return Withheld.NOTHING_MEASURED
    coverage = split.coverage() or Fraction(0)
    if split.measured_us < BUDGET_LEAST_MEASURED_US or coverage < BUDGET_LEAST_COVERAGE:
        return Withheld.DECIDABLE_COVERAGE_BELOW_MIN
    allowed = Fraction(WHOLE - objective, WHOLE)
    actual = Fraction(split.bad_us, split.measured_us)
    return ErrorBudget(
        objective=objective / OBJECTIVE_SCALE,
        allowed_downtime_ratio=float(allowed),
        actual_downtime_ratio=float(actual),
        remaining_ratio=float(allowed - actual),
        burned_percent=float(100 * actual / allowed),
        met=actual <= allowed,
        exhausted=is_exhausted(split, objective),
    )


def burn_rate(split: Split, objective: int) -> Fraction | None:
    """Returns (bad / (good + bad)) / (1 − objective); None if the coverage is too low."""
    coverage = split.coverage()
    if not split.measured_us or coverage is None or coverage < BURN_LEAST_COVERAGE:
        return None
    return Fraction(split.bad_us * WHOLE, split.measured_us * (WHOLE - objective))


def digits(sample: int) -> int:
    """Returns the decimals that a sample size justifies: 1 of 1 000 is a tenth of a percent.

    At least 0, at most 4, as in an objective.
    """
    return min(max(len(str(max(sample, 1))) - 3, 0), 4)


def spelt(ratio: Fraction, sample: int) -> str:
    """Formats a percentage with the decimals that its sample justifies, truncated.

    "100" and "0" appear only for exact values. If the decimals do not suffice, returns "> 99" or "<
    1" with that number of decimals.
    """
    places = digits(sample)
    scale = 10**places
    steps = ratio * 100 * scale
    whole = int(steps)
    if whole == 0 and ratio > 0:
        return f"< {Decimal(1) / scale:.{places}f}"
    if steps != whole and whole == 100 * scale - 1:
        return f"> {Decimal(whole) / scale:.{places}f}"
    return f"{Decimal(whole) / scale:.{places}f}"
