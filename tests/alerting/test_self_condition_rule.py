"""Conditions of Leadline: the state machine agrees with a model that reads the whole history."""

from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.alerting.rules.self_condition import (
    BOUNDS_US,
    CLEAR_US,
    GAP_US,
    SelfAction,
    SelfCondition,
    Streak,
    body_of,
    observe,
    title_of,
)
from leadline.storage.core.instant import MINUTE, SECOND, Instant
from leadline.storage.incidents.rules.incident import body_fault, title_fault

START = Instant(1_767_225_600_000_000)
steps = st.lists(
    st.tuples(
        st.sampled_from([SECOND, 15 * SECOND, GAP_US, GAP_US + 1, 5 * MINUTE]),
        st.sampled_from([True, True, False, None]),
    ),
    max_size=40,
)
bounds = st.sampled_from([0, MINUTE, 3 * MINUTE])

Seen = list[tuple[Instant, bool]]


def lasted(seen: Seen, value: bool) -> int | None:
    """Returns for how long the last observations were `value`, without a gap; None if not."""
    if not seen or seen[-1][1] is not value:
        return None
    first = len(seen) - 1
    while first and seen[first - 1][1] is value and seen[first][0] - seen[first - 1][0] <= GAP_US:
        first -= 1
    return seen[-1][0] - seen[first][0]


@given(steps, bounds)
def test_an_incident_is_opened_and_resolved_as_the_history_says(
    history: list[tuple[int, bool | None]], bound: int
) -> None:
    now, streak, is_open = START, None, False
    seen: Seen = []
    for us, holds in history:
        now = Instant(now + us)
        streak, action = observe(streak, holds, bound, now)
        if holds is None:
            assert action is SelfAction.NOTHING
            continue
        seen.append((now, holds))
        held, clear = lasted(seen, True), lasted(seen, False)
        if not is_open and held is not None and held >= bound:
            expected, is_open = SelfAction.OPEN, True
        elif is_open and clear is not None and clear >= CLEAR_US:
            expected, is_open = SelfAction.RESOLVE, False
        else:
            expected = SelfAction.NOTHING
        assert action is expected
        assert (streak is not None and streak.reported) is is_open


def test_time_without_an_observation_counts_neither_way() -> None:
    before = Streak(True, START, START)
    after, action = observe(before, True, MINUTE, Instant(START + GAP_US + 1))
    assert action is SelfAction.NOTHING
    assert after is not None
    assert after.since == START + GAP_US + 1


@given(st.sampled_from(SelfCondition), st.integers(1, 100_000))
def test_the_texts_fit_an_incident(kind: SelfCondition, count: int) -> None:
    assert title_fault(title_of(kind, "r" * 63)) is None
    assert body_fault(body_of(kind, count)) is None
    assert kind in BOUNDS_US
