"""The server's time is carried through anything that the box's own date does, and through slow
answers within what they leave open; a leap begins a new era only when two answers agree on it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.daemon.agent.server_clock import (
    DOUBT_US,
    DRIFT_PPM,
    FIRST_ANSWERS,
    OPEN_US,
    NoTimeYet,
    ServerClock,
    TimeReading,
)
from tests.agents.job_samples import T0

SECOND = 1_000_000


class Box:
    """A count that a test moves."""

    def __init__(self) -> None:
        self.at = 5_000 * SECOND
        self.clock = ServerClock(lambda: self.at)

    def hear(self, said: int, *, took: int = 0) -> TimeReading:
        asked_at = self.at
        self.at += took
        return self.clock.hear(said, asked_at, self.at)


def test_the_clock_is_unset_before_the_first_response() -> None:
    box = Box()
    assert not box.clock.is_set
    with pytest.raises(NoTimeYet):
        box.clock.now()


@given(
    st.lists(
        st.tuples(
            st.integers(0, 600 * SECOND),  # since the last
            st.integers(0, 9 * SECOND),  # there
            st.integers(0, 9 * SECOND),  # and back
        ),
        min_size=1,
        max_size=30,
    ),
    st.integers(-DRIFT_PPM + 1, DRIFT_PPM - 1),
)
def test_it_is_never_further_off_than_the_quickest_answer_leaves_open(
    asked: list[tuple[int, int, int]], ppm: int
) -> None:
    """Against a server whose time is known, over lines that are slow one way or the other, with a
    count that drifts."""
    box, start = Box(), 5_000 * SECOND

    def truth() -> int:
        elapsed = box.at - start
        return T0 + elapsed + elapsed * ppm // 1_000_000

    width: int | None = None
    for since, there, back in asked:
        box.at += since
        asked_at = box.at
        box.at += there
        said = truth()
        box.at += back
        assert box.clock.hear(said, asked_at, box.at) is not TimeReading.DOUBTED
        took = there + back
        drift = 2 * ((since + took) * DRIFT_PPM // 1_000_000 + 1)
        width = took if width is None else min(width + drift, took)
        assert abs(box.clock.now() - truth()) <= width + took * DRIFT_PPM // 1_000_000 + 2
    assert box.clock.era == 0


@given(st.lists(st.integers(0, 20 * SECOND), min_size=1, max_size=12))
def test_no_result_is_dated_while_the_time_is_vague(took: list[int]) -> None:
    """Unless every response is slow: then the time of the quickest one has to do."""
    box = Box()
    for number, each in enumerate(took, 1):
        box.hear(T0 + box.at, took=each)
        is_exact = min(took[:number]) <= OPEN_US - 2 * number * 20_000
        if is_exact or number >= FIRST_ANSWERS:
            assert box.clock.is_set
        elif min(took[:number]) > OPEN_US:
            assert not box.clock.is_set


def test_a_vague_time_does_not_stop_an_agent_whose_time_was_exact() -> None:
    box = Box()
    assert box.hear(T0) is TimeReading.FIRST
    box.at += 86_400 * SECOND
    box.hear(T0 + 86_400 * SECOND, took=30 * SECOND)
    assert box.clock.is_set


def test_one_odd_answer_is_doubted_and_the_next_that_agrees_ends_the_doubt() -> None:
    box = Box()
    box.hear(T0)
    box.at += 10 * SECOND
    assert box.hear(T0 + 10 * SECOND + DOUBT_US + SECOND) is TimeReading.DOUBTED
    assert box.clock.is_doubted
    assert box.clock.now() == T0 + 10 * SECOND
    box.at += SECOND
    assert box.hear(T0 + 11 * SECOND) is TimeReading.AGREES
    assert not box.clock.is_doubted
    assert (box.clock.now(), box.clock.era) == (T0 + 11 * SECOND, 0)


@given(st.integers(DOUBT_US + 1, 10**14), st.sampled_from([-1, 1]))
def test_two_answers_that_agree_with_each_other_begin_an_era(leap: int, way: int) -> None:
    box = Box()
    box.hear(T0)
    assert box.hear(T0 + way * leap) is TimeReading.DOUBTED
    box.at += SECOND
    assert box.hear(T0 + way * leap + SECOND) is TimeReading.LEAPT
    assert (box.clock.now(), box.clock.era) == (T0 + way * leap + SECOND, 1)
    assert not box.clock.is_doubted


def test_responses_that_agree_with_no_other_stay_doubted() -> None:
    box = Box()
    box.hear(T0)
    for n in range(1, 9):
        assert box.hear(T0 + n * 2 * (DOUBT_US + SECOND)) is TimeReading.DOUBTED
    assert box.clock.now() == T0


def test_an_answer_that_took_long_is_not_doubted_for_that() -> None:
    box = Box()
    box.hear(T0)
    assert box.hear(T0 + 100 * SECOND, took=100 * SECOND) is TimeReading.AGREES
    assert box.clock.now() == T0 + 100 * SECOND


@given(st.integers(-DOUBT_US, DOUBT_US))
def test_a_small_difference_is_adopted_immediately(step: int) -> None:
    box = Box()
    box.hear(T0)
    assert box.hear(T0 + step) is TimeReading.AGREES
    assert abs(box.clock.now() - T0 - step) <= 2
