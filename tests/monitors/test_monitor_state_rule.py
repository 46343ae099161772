"""The fold of results, compared with a computation from the complete history."""

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


def read_from_the_start(results: list[bool], threshold: int) -> tuple[str, int, int | None]:
    """(status, failures, index since): from every prefix, by the sentence of the text."""
    statuses: list[str] = ["pending"]
    for index in range(len(results)):
        seen = results[: index + 1]
        if seen[-1]:
            statuses.append("up")
        elif len(seen) >= threshold and not any(seen[-threshold:]):
            statuses.append("down")
        else:
            statuses.append(statuses[-1])
    trailing = next((i for i, up in enumerate(reversed(results)) if up), len(results))
    begun = None
    for index in range(len(results), 0, -1):
        if statuses[index] == "pending" or statuses[index] != statuses[-1]:
            break
        begun = index - 1
    return statuses[-1], min(trailing, threshold), begun


@given(st.lists(st.booleans(), max_size=30), st.integers(1, 6))
def test_the_state_equals_the_computation_from_the_complete_history(
    results: list[bool], threshold: int
) -> None:
    state = fold_all(
        NOTHING_YET, ((Instant(NOW + i), up) for i, up in enumerate(results)), threshold
    )
    status, failures, since = read_from_the_start(results, threshold)
    assert state == MonitorState(
        MonitorStatus(status), failures, None if since is None else Instant(NOW + since)
    )


@given(st.lists(st.booleans(), max_size=30), st.integers(1, 6), st.booleans())
def test_an_unchanged_state_is_the_same_object(
    results: list[bool], threshold: int, up: bool
) -> None:
    state = fold_all(
        NOTHING_YET, ((Instant(NOW + i), up) for i, up in enumerate(results)), threshold
    )
    steady = state.status == (MonitorStatus.UP if up else MonitorStatus.DOWN) and (
        state.failures == (0 if up else threshold)
    )
    assert (fold(state, up, Instant(NOW + 99), threshold) is state) == steady


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
