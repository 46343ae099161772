"""Conditions of Leadline itself: when an incident about one is opened and resolved.

An incident opens after the condition has been observed without a gap for its bound. It is resolved
after the condition has been observed absent for CLEAR_US. Time that no process observed counts
neither way. A person can resolve the incident earlier: then no further one opens before the
condition has ended.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ...core.instant import HOUR, MINUTE, Instant

# Time between two observations above which a streak begins again.
GAP_US: Final = MINUTE
CLEAR_US: Final = 2 * MINUTE
# A delivery that was given up counts for this time.
DEAD_COUNTS_US: Final = HOUR
# A delivery that waits longer for a sender is late.
DELIVERY_LATE_US: Final = 10 * MINUTE
# Lags of the schedule and of sealing above which the store lags.
RESERVED_LAG_US: Final = MINUTE
SEALED_LAG_US: Final = 15 * MINUTE


class SelfCondition(StrEnum):
    REGION_WITHOUT_PROBER = "region_without_prober"
    DELIVERIES_FAIL = "deliveries_fail"
    STORE_LAGS = "store_lags"
    KEY_OPENS_NOTHING = "key_opens_nothing"


BOUNDS_US: Final = {
    SelfCondition.REGION_WITHOUT_PROBER: 3 * MINUTE,
    SelfCondition.DELIVERIES_FAIL: 0,
    SelfCondition.STORE_LAGS: 3 * MINUTE,
    SelfCondition.KEY_OPENS_NOTHING: 0,
}


@dataclass(frozen=True, slots=True)
class Streak:
    """Present streak of equal observations. `reported`: the incident was opened."""

    holds: bool
    since: Instant
    observed_at: Instant
    reported: bool = False


class SelfAction(StrEnum):
    NOTHING = "nothing"
    OPEN = "open"
    RESOLVE = "resolve"


def observe(
    streak: Streak | None, holds: bool | None, bound_us: int, now: Instant
) -> tuple[Streak | None, SelfAction]:
    """Returns the streak after an observation, None for a condition to forget, and the action.

    Args:
        holds: None if this process cannot know.
    """
    if holds is None:
        return streak, SelfAction.NOTHING
    if streak is None and not holds:
        return None, SelfAction.NOTHING
    reported = streak is not None and streak.reported
    continues = streak is not None and streak.holds is holds and now - streak.observed_at <= GAP_US
    since = streak.since if streak is not None and continues else now
    if holds:
        if not reported and now - since >= bound_us:
            return Streak(True, since, now, reported=True), SelfAction.OPEN
        return Streak(True, since, now, reported), SelfAction.NOTHING
    if not reported:
        return None, SelfAction.NOTHING
    if now - since >= CLEAR_US:
        return None, SelfAction.RESOLVE
    return Streak(False, since, now, reported=True), SelfAction.NOTHING


def title_of(kind: SelfCondition, subject: str) -> str:
    """Returns the title of the incident. It names no target, as none has failed."""
    match kind:
        case SelfCondition.REGION_WITHOUT_PROBER:
            return f"Leadline: region {subject} has no live prober"
        case SelfCondition.DELIVERIES_FAIL:
            return "Leadline: deliveries fail"
        case SelfCondition.STORE_LAGS:
            return "Leadline: the store lags"
        case SelfCondition.KEY_OPENS_NOTHING:
            return f"Leadline: the encryption key of {subject} decrypts no stored value"


def body_of(kind: SelfCondition, count: int) -> str:
    """Returns the text of the incident.

    Args:
        count: monitors of the region in the project, or deliveries.
    """
    match kind:
        case SelfCondition.REGION_WITHOUT_PROBER:
            monitors = "1 monitor" if count == 1 else f"{count} monitors"
            return (
                f"{monitors} of this project cannot be checked: their due runs are missed, and no"
                " target is reported as down. Start a worker or an agent of the region, or move"
                " the monitors."
            )
        case SelfCondition.DELIVERIES_FAIL:
            deliveries = "1 delivery was" if count == 1 else f"{count} deliveries were"
            return (
                f"{deliveries} given up in the last hour, or waits for a sender. The screen of"
                " failed deliveries has the reasons."
            )
        case SelfCondition.STORE_LAGS:
            return (
                "Due runs are reserved late, or results are sealed late. Figures are withheld"
                " meanwhile. Look for a blocked or overloaded database."
            )
        case SelfCondition.KEY_OPENS_NOTHING:
            return (
                "Checks and channels with secrets do not work. Configure the key with which the"
                " values were encrypted as security.encryption_key or security.previous_keys."
            )


RESOLVED_BODY: Final = "The condition has ended."
