"""Burn rules: each compares the burn rates of a long and a short window to a threshold.

A rule fires when both burn rates reach its threshold, and clears when one of them is known to be
below. The long window prevents that a short failure fires the rule. The short window ends it soon
after the failure. If a rate is unknown, the state is `unevaluated`, because the previous state may
be outdated.
Source: multiwindow, multi-burn-rate alerts, Site Reliability Workbook, chapter 5.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Decimal
from enum import StrEnum
from fractions import Fraction
from typing import Final

from ..core.instant import DAY, HOUR, MINUTE, SECOND, Instant
from ..core.runbook import runbook_fault

RULES_MOST: Final = 4
LONG_LONGEST_US: Final = 7 * DAY
SERVICE_SHORT_LEAST_US: Final = 300 * SECOND
MONITOR_SHORT_LEAST_US: Final = 60 * SECOND
# Upper bound of the burn rate with the highest possible objective.
THRESHOLD_MOST: Final = 1_000_000
_THRESHOLD_SCALE: Final = 10_000
# Permitted lag of the watermark beyond the longest timeout of a member.
LAG_MOST_US: Final = 600 * SECOND


class BurnSeverity(StrEnum):
    PAGE = "page"
    TICKET = "ticket"


@dataclass(frozen=True, slots=True)
class BurnRule:
    """Burn rule. `threshold` is a burn rate; 1 uses the budget up exactly over the window.

    An empty `runbook_url` names the runbook of the owner.
    """

    long_us: int
    short_us: int
    threshold: Fraction
    severity: BurnSeverity
    runbook_url: str = ""

    @property
    def without_runbook(self) -> "BurnRule":
        """Returns the part of the rule that decides when it fires."""
        return replace(self, runbook_url="")


DEFAULT_RULES: Final = (
    BurnRule(HOUR, 5 * MINUTE, Fraction(144, 10), BurnSeverity.PAGE),
    BurnRule(6 * HOUR, 30 * MINUTE, Fraction(6), BurnSeverity.TICKET),
)


class BurnState(StrEnum):
    FIRING = "firing"
    CLEAR = "clear"
    UNEVALUATED = "unevaluated"


def decide_burn(rule: BurnRule, long: Fraction | None, short: Fraction | None) -> BurnState:
    """Returns the state for the two burn rates. None means an unknown rate."""
    rates = (long, short)
    if any(rate is not None and rate < rule.threshold for rate in rates):
        return BurnState.CLEAR
    if any(rate is None for rate in rates):
        return BurnState.UNEVALUATED
    return BurnState.FIRING


def fires(before: bool, verdict: BurnState) -> bool:
    """Returns whether the rule fires after an evaluation, given whether it fired before."""
    return before if verdict is BurnState.UNEVALUATED else verdict is BurnState.FIRING


class BurnNotification(StrEnum):
    """Type of a burn notification."""

    BURNING = "burning"
    REMINDER = "reminder"
    CALM = "recovered"


def word_of(
    firing: bool, notified_at: Instant | None, renotify_us: int, now: Instant
) -> BurnNotification | None:
    """Returns the notification to send now, if any.

    A firing rule is announced once, and repeated if `renotify_us` is set. A recovery is sent once,
    and only after an announcement.
    """
    if not firing:
        return None if notified_at is None else BurnNotification.CALM
    if notified_at is None:
        return BurnNotification.BURNING
    return BurnNotification.REMINDER if renotify_us and notified_at + renotify_us <= now else None


def is_stale(watermark: Instant | None, longest_timeout_us: int, now: Instant) -> bool:
    """Returns whether the watermark is too old for an evaluation."""
    return watermark is None or now - watermark > longest_timeout_us + LAG_MOST_US


def faults(rules: Sequence[BurnRule], short_least_us: int) -> Iterator[tuple[str, str]]:
    """Yields (field, fault) of the rules in a request."""
    if len(rules) > RULES_MOST:
        yield "burn_rules", f"must have at most {RULES_MOST} entries"
    for n, rule in enumerate(rules):
        field = f"burn_rules[{n}]"
        if rule.short_us < short_least_us:
            least = short_least_us // SECOND
            yield f"{field}.short_window_seconds", f"must be at least {least} seconds"
        if rule.long_us <= rule.short_us:
            yield f"{field}.long_window_seconds", "must be above the short window"
        if rule.long_us > LONG_LONGEST_US:
            most = LONG_LONGEST_US // SECOND
            yield f"{field}.long_window_seconds", f"must be at most {most} seconds"
        if rule.threshold <= 0:
            yield f"{field}.threshold", "must be above 0"
        if rule.threshold > THRESHOLD_MOST:
            yield f"{field}.threshold", f"must be at most {THRESHOLD_MOST}"
        if (broken := runbook_fault(rule.runbook_url)) is not None:
            yield f"{field}.runbook_url", broken


def threshold_of(number: float) -> Fraction:
    """Returns a threshold with four decimals, rounded half up, as it is stored."""
    scaled = Decimal(str(number)) * _THRESHOLD_SCALE
    return Fraction(int(scaled.to_integral_value(ROUND_HALF_UP)), _THRESHOLD_SCALE)
