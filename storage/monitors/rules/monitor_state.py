"""State of a monitor: its results folded in the order of their instants.

`failure_threshold` consecutive failures change it to DOWN. `recovery_threshold` consecutive
successes change it from DOWN to UP; the first success of a monitor makes it UP. The folded state
has no clock: a missing run neither increments nor resets a count. The console and alerting use the
folded state with freshness: while no result is fresh, the status is pending.

A changed threshold does not change the state. It applies to the next result, and a DOWN monitor
stays DOWN until a success.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

import msgspec

from ...core.instant import SECOND, Instant

ACTIVE_MULTIPLIER = 3
ACTIVE_FLOOR_US = 90 * SECOND


class MonitorStatus(StrEnum):
    PENDING = "pending"
    UP = "up"
    DOWN = "down"


@dataclass(frozen=True, slots=True)
class MonitorState:
    """State of a monitor.

    `failures` counts consecutive failures up to the threshold, so that an unchanged state is equal
    and need not be written. While a DOWN monitor recovers, it keeps the count before the recovery,
    and `successes` counts the successes since. `since` is the instant of the result that caused the
    status.
    """

    status: MonitorStatus = MonitorStatus.PENDING
    failures: int = 0
    since: Instant | None = None
    successes: int = 0


NOTHING_YET = MonitorState()


def fold(
    state: MonitorState,
    up: bool,
    instant: Instant,
    failure_threshold: int,
    recovery_threshold: int = 1,
) -> MonitorState:
    """Returns the state after one more result, which must be newer than all folded ones."""
    if up and state.status is MonitorStatus.DOWN and state.successes + 1 < recovery_threshold:
        return replace(state, successes=state.successes + 1)
    if up:
        since = state.since if state.status is MonitorStatus.UP else instant
        return _unless_same(state, MonitorState(MonitorStatus.UP, 0, since))
    failures = min(state.failures + 1, failure_threshold)
    if state.status is MonitorStatus.DOWN:
        return _unless_same(state, MonitorState(MonitorStatus.DOWN, failures, state.since))
    if failures < failure_threshold:
        return MonitorState(state.status, failures, state.since)
    return MonitorState(MonitorStatus.DOWN, failures, instant)


def fold_all(
    state: MonitorState,
    results: Iterable[tuple[Instant, bool]],
    failure_threshold: int,
    recovery_threshold: int = 1,
) -> MonitorState:
    """Folds (instant, up) results, which must be in order of their instants."""
    for instant, up in results:
        state = fold(state, up, instant, failure_threshold, recovery_threshold)
    return state


def is_foldable(instant: Instant, newest: Instant | None) -> bool:
    """Returns whether a live result is newer than the newest stored one."""
    return newest is None or instant > newest


def freshness_us(
    interval_us: int, multiplier: int = ACTIVE_MULTIPLIER, floor_us: int = ACTIVE_FLOOR_US
) -> int:
    """Returns the freshness of a probe result in µs."""
    return max(multiplier * interval_us, floor_us)


def fresh_until(
    instant: Instant,
    interval_us: int,
    multiplier: int = ACTIVE_MULTIPLIER,
    floor_us: int = ACTIVE_FLOOR_US,
) -> Instant:
    """Returns the end of freshness, by the interval in force when the run began.

    For a push result, see `push_deadline.fresh_until`.
    """
    return Instant(instant + freshness_us(interval_us, multiplier, floor_us))


def status_at(status: MonitorStatus, held_until: Instant | None, now: Instant) -> MonitorStatus:
    """Returns the status to show and use for a folded status.

    `held_until` is the newest result's end of freshness.
    """
    if held_until is None or now >= held_until:
        return MonitorStatus.PENDING
    return status


def _unless_same(before: MonitorState, after: MonitorState) -> MonitorState:
    return before if before == after else after


class StatusChange(msgspec.Struct, frozen=True):
    """Status change, as the storing process publishes it."""

    org: int
    monitor: int
    at: Instant
    old_status: MonitorStatus
    new_status: MonitorStatus
