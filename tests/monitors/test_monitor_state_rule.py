"""The fold of results, compared with a computation from the complete history."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.core.instant import SECOND, Instant
from leadline.storage.monitors.rules.monitor_state import (
    NOTHING_YET,
    MonitorState,
    MonitorStatus,
    fold,
    fold_all,
    fresh_until,
    is_foldable,
    status_at,
)

NOW = Instant(1_800_000_000 * SECOND)


def read_from_the_start(
    results: list[bool], threshold: int, recovery: int = 1
) -> tuple[str, int, int | None, int]:
    """(status, failures, index since, successes): from every prefix, by the sentence of the text.

    The failures of a DOWN monitor that recovers are those before its successes.
    """
    statuses: list[str] = ["pending"]
    for index in range(len(results)):
        seen = results[: index + 1]
        recovered = len(seen) >= recovery and all(seen[-recovery:])
        if seen[-1]:
            statuses.append("up" if statuses[-1] != "down" or recovered else "down")
        elif len(seen) >= threshold and not any(seen[-threshold:]):
            statuses.append("down")
        else:
            statuses.append(statuses[-1])
    begun = None
    for index in range(len(results), 0, -1):
        if statuses[index] == "pending" or statuses[index] != statuses[-1]:
            break
        begun = index - 1
    successes = 0
    if statuses[-1] == "down":
        successes = next((i for i, up in enumerate(reversed(results)) if not up), 0)
        # Any failure of a DOWN monitor counts on, so it stays at the threshold.
        return "down", threshold, begun, successes
    trailing = next((i for i, up in enumerate(reversed(results)) if up), len(results))
    return statuses[-1], min(trailing, threshold), begun, 0


RESULTS = st.lists(st.booleans(), max_size=30)
THRESHOLD = st.integers(1, 6)


def folded(results: list[bool], threshold: int, recovery: int) -> MonitorState:
    instants = ((Instant(NOW + i), up) for i, up in enumerate(results))
    return fold_all(NOTHING_YET, instants, threshold, recovery)


@given(RESULTS, THRESHOLD, THRESHOLD)
def test_the_state_equals_the_computation_from_the_complete_history(
    results: list[bool], threshold: int, recovery: int
) -> None:
    status, failures, since, successes = read_from_the_start(results, threshold, recovery)
    assert folded(results, threshold, recovery) == MonitorState(
        MonitorStatus(status), failures, None if since is None else Instant(NOW + since), successes
    )


@given(RESULTS, THRESHOLD, THRESHOLD, st.booleans())
def test_an_unchanged_state_is_the_same_object(
    results: list[bool], threshold: int, recovery: int, up: bool
) -> None:
    state = folded(results, threshold, recovery)
    steady = state.status == (MonitorStatus.UP if up else MonitorStatus.DOWN) and (
        (state.failures, state.successes) == (0 if up else threshold, 0)
    )
    assert (fold(state, up, Instant(NOW + 99), threshold, recovery) is state) == steady


def test_all_short_histories_agree_with_the_model() -> None:
    """A brute force over every history of eight results and all small thresholds."""
    for threshold, recovery in product((1, 2, 3), repeat=2):
        for results in product((False, True), repeat=8):
            status, failures, _, successes = read_from_the_start(list(results), threshold, recovery)
            state = folded(list(results), threshold, recovery)
            assert (state.status, state.failures, state.successes) == (status, failures, successes)


def test_a_lower_recovery_threshold_waits_for_the_next_success() -> None:
    down = MonitorState(MonitorStatus.DOWN, 1, NOW)
    half = fold(down, True, Instant(NOW + 1), 1, 5)
    assert half == MonitorState(MonitorStatus.DOWN, 1, NOW, 1)
    assert fold(half, True, Instant(NOW + 2), 1, 1) == MonitorState(
        MonitorStatus.UP, 0, Instant(NOW + 2)
    )
    assert fold(half, False, Instant(NOW + 2), 1, 5) == down


def test_failures_below_the_threshold_leave_the_status_pending() -> None:
    state = fold(NOTHING_YET, False, NOW, 3)
    assert state == MonitorState(MonitorStatus.PENDING, 1, None)


def test_an_edit_of_the_threshold_waits_for_the_next_result() -> None:
    failing = fold_all(NOTHING_YET, [(NOW, True), (NOW, False), (NOW, False)], 3)
    assert failing == MonitorState(MonitorStatus.UP, 2, NOW)
    assert fold(failing, False, Instant(NOW + 1), 2).status is MonitorStatus.DOWN
    assert fold(failing, False, Instant(NOW + 1), 5) == MonitorState(MonitorStatus.UP, 3, NOW)
    down = MonitorState(MonitorStatus.DOWN, 3, NOW)
    assert fold(down, False, Instant(NOW + 1), 10).status is MonitorStatus.DOWN
    assert fold(down, True, Instant(NOW + 1), 10).status is MonitorStatus.UP


def test_only_what_is_newer_than_all_that_is_stored_moves_the_state() -> None:
    assert is_foldable(NOW, None)
    assert is_foldable(Instant(NOW + 1), NOW)
    assert not is_foldable(NOW, NOW)
    assert not is_foldable(Instant(NOW - 1), NOW)


def test_a_result_is_fresh_for_three_intervals_and_at_least_90_seconds() -> None:
    assert fresh_until(NOW, 5 * SECOND) == NOW + 90 * SECOND
    assert fresh_until(NOW, 60 * SECOND) == NOW + 180 * SECOND
    assert fresh_until(NOW, 60 * SECOND, multiplier=2, floor_us=0) == NOW + 120 * SECOND


def test_the_status_without_a_fresh_result_is_pending() -> None:
    down = MonitorStatus.DOWN
    assert status_at(down, Instant(NOW + 10), Instant(NOW + 9)) is MonitorStatus.DOWN
    assert status_at(down, Instant(NOW + 10), Instant(NOW + 10)) is MonitorStatus.PENDING
    assert status_at(down, None, NOW) is MonitorStatus.PENDING
