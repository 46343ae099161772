"""A monitor's state: what its results say, folded in the order of their instants.

`failure_threshold` consecutive failures make DOWN and one success makes UP. The folded state knows
no clock: a run that is missing neither adds to the count nor resets it. What is shown and what
pages is the folded state with freshness: while no result holds, nothing is known, and the status
is pending.

A changed threshold says nothing about the target, so it changes no state by itself; the next
result is judged by it, and what is DOWN stays so until a success.
"""

from collections.abc import Iterable
from dataclasses import dataclass
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
    """`failures` is the run of failures so far, at most the threshold, so that a state that goes on
    as it was is the same value and need not be written. `since` is the instant of the result that
    made the status."""

    status: MonitorStatus = MonitorStatus.PENDING
    failures: int = 0
    since: Instant | None = None


NOTHING_YET = MonitorState()


def fold(state: MonitorState, up: bool, instant: Instant, failure_threshold: int) -> MonitorState:
    """The state after one more result, which must be newer than all that were folded before."""
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
    state: MonitorState, results: Iterable[tuple[Instant, bool]], failure_threshold: int
) -> MonitorState:
    """Folds (instant, up) in the order given, which must be that of the instants."""
    for instant, up in results:
        state = fold(state, up, instant, failure_threshold)
    return state


def is_foldable(instant: Instant, newest: Instant | None) -> bool:
    """Whether a live result moves the state: only one newer than the newest stored does."""
    return newest is None or instant > newest


def freshness_us(
    interval_us: int, multiplier: int = ACTIVE_MULTIPLIER, floor_us: int = ACTIVE_FLOOR_US
) -> int:
    """How long a probed result may speak for the target after its instant."""
    return max(multiplier * interval_us, floor_us)


def fresh_until(
    instant: Instant,
    interval_us: int,
    multiplier: int = ACTIVE_MULTIPLIER,
    floor_us: int = ACTIVE_FLOOR_US,
) -> Instant:
    """The instant from which a result speaks no longer, by the interval in force when it began.

    A push result holds until its deadline instead, see `push_deadline.fresh_until`.
    """
    return Instant(instant + freshness_us(interval_us, multiplier, floor_us))


def status_at(state: MonitorState, held_until: Instant | None, now: Instant) -> MonitorStatus:
    """The status to show and to act on; `held_until` is the end of the newest result's hold."""
    if held_until is None or now >= held_until:
        return MonitorStatus.PENDING
    return state.status


def _unless_same(before: MonitorState, after: MonitorState) -> MonitorState:
    return before if before == after else after


class StatusChange(msgspec.Struct, frozen=True):
    """A change of status, as the process that stored it tells it on."""

    org: int
    monitor: int
    at: Instant
    old_status: MonitorStatus
    new_status: MonitorStatus
