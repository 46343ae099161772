"""Warning of a monitor whose checks are slow, which is not an outage.

A warning begins when a number of successful checks in a row took longer than the threshold, and
ends when the same number in a row did not. Status, availability and incidents do not change.

Invariant: only a measured response time counts. A failed check, a missed window and a pause neither
begin nor end a warning.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from ...core.instant import Instant


@dataclass(frozen=True, slots=True)
class SlowState:
    """State of the warning of one monitor.

    `seen` is the newest counted result, `streak` the number of results in a row that
    contradict the present state. `since` is the begin of the warning, None without one.
    `above_ms` is the threshold that the streak was counted with.
    """

    seen: Instant
    streak: int = 0
    since: Instant | None = None
    above_ms: int = 0


@dataclass(frozen=True, slots=True)
class MeasuredCheck:
    """Result of a check. `latency_ms` is None if the check failed."""

    ts: Instant
    latency_ms: int | None


@dataclass(frozen=True, slots=True)
class SlowChange:
    """Begin or end of a warning. `latency_ms` is the response time that decided."""

    at: Instant
    latency_ms: int
    is_slow: bool


def follow(
    state: SlowState, results: Iterable[MeasuredCheck], above_ms: int, in_row: int
) -> tuple[SlowState, list[SlowChange]]:
    """Returns the state after results in the order of time, and the changes.

    Another threshold than before starts a new streak.
    """
    seen, since = state.seen, state.since
    streak = state.streak if state.above_ms == above_ms else 0
    changes: list[SlowChange] = []
    for result in results:
        seen = result.ts
        if result.latency_ms is None:
            continue
        is_slow = result.latency_ms > above_ms
        streak = streak + 1 if is_slow != (since is not None) else 0
        if streak >= in_row:
            streak, since = 0, result.ts if is_slow else None
            changes.append(SlowChange(result.ts, result.latency_ms, is_slow))
    return SlowState(seen, streak, since, above_ms), changes
