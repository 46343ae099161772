"""The windows of a schedule, compared with a walk through time in steps of one microsecond."""

from uuid import UUID

from hypothesis import assume, given
from hypothesis import strategies as st

from leadline.storage.core.instant import DAY, HOUR, MILLISECOND, MINUTE, SECOND, Instant
from leadline.storage.scheduling.rules.run_schedule import (
    ResultMode,
    RunWindow,
    ScheduleTerm,
    anchor_for,
    claimable_until,
    confirm_at,
    next_due,
    next_window,
    sealing_at,
    term_at,
    window_at,
    windows,
)

NOW = Instant(1_800_000_000 * SECOND)


@st.composite
def histories(draw: st.DrawFn) -> list[ScheduleTerm]:
    """Terms in tiny units, so that every instant can be visited; equal beginnings included."""
    starts = sorted(draw(st.lists(st.integers(0, 150), min_size=1, max_size=5)))
    return [
        ScheduleTerm(
            from_=Instant(start),
            anchor=Instant(draw(st.integers(-50, 200))),
            interval_us=draw(st.integers(1, 30)),
            timeout_us=draw(st.integers(1, 20)),
            grace_us=draw(st.integers(0, 20)),
            enabled=draw(st.booleans()),
            shard=draw(st.integers(0, 1)),
        )
        for start in starts
    ]


def walk(terms: list[ScheduleTerm], after: int, through: int) -> list[RunWindow]:
    """The windows by the specification, one instant at a time: the last term that began before
    decides."""
    found = []
    for instant in range(after + 1, through + 1):
        begun = [term for term in terms if term.from_ < instant]
        if begun and (instant - begun[-1].anchor) % begun[-1].interval_us == 0:
            found.append(RunWindow(Instant(instant), begun[-1]))
    return found


@given(histories(), st.integers(-20, 250), st.integers(0, 250))
def test_every_window_is_found_once_under_the_term_then_in_force(
    terms: list[ScheduleTerm], after: int, length: int
) -> None:
    found = windows(terms, Instant(after), Instant(after + length))
    assert found == walk(terms, after, after + length)


@given(histories(), st.integers(-20, 250), st.integers(0, 100), st.integers(0, 100))
def test_two_reservations_in_a_row_are_one(
    terms: list[ScheduleTerm], after: int, first: int, second: int
) -> None:
    middle, end = Instant(after + first), Instant(after + first + second)
    assert windows(terms, Instant(after), middle) + windows(terms, middle, end) == windows(
        terms, Instant(after), end
    )


@given(histories(), st.integers(-20, 250))
def test_the_next_window_is_the_first_that_would_be_found(
    terms: list[ScheduleTerm], after: int
) -> None:
    found = walk(terms, after, after + 400)
    assert next_window(terms, Instant(after)) == found[0]
    assert window_at(terms, found[0].due) == found[0]
    assert window_at(terms, Instant(found[0].due - 1)) == (
        next(iter(walk(terms, found[0].due - 2, found[0].due - 1)), None)
    )


@given(histories(), st.integers(-20, 250))
def test_the_term_of_an_instant_is_the_last_one_begun_before_it(
    terms: list[ScheduleTerm], instant: int
) -> None:
    begun = [term for term in terms if term.from_ < instant]
    assert term_at(terms, Instant(instant)) == (begun[-1] if begun else None)


def test_a_gap_of_a_year_costs_no_more_than_its_windows() -> None:
    term = ScheduleTerm(NOW, NOW, 5 * SECOND, SECOND)
    year = Instant(NOW + 365 * DAY)
    assert [w.due for w in windows([term], year, Instant(year + 10 * SECOND))] == [
        year + 5 * SECOND,
        year + 10 * SECOND,
    ]


@given(st.uuids(), st.integers(5, 86_400), st.integers(0, DAY * 400))
def test_an_anchor_is_a_whole_millisecond_just_before_and_always_on_the_same_grid(
    monitor: UUID, seconds: int, later_us: int
) -> None:
    interval_us = seconds * SECOND
    first = anchor_for(monitor, interval_us, NOW)
    again = anchor_for(monitor, interval_us, Instant(NOW + later_us))
    assert first % MILLISECOND == 0
    assert NOW - interval_us < first <= NOW
    assert (again - first) % interval_us == 0


def test_anchors_spread_a_fleet_over_its_interval() -> None:
    interval_us = 60 * SECOND
    tenths = [0] * 10
    for number in range(10_000):
        phase = anchor_for(UUID(int=number), interval_us, NOW) % interval_us
        tenths[phase * 10 // interval_us] += 1
    assert min(tenths) > 850
    assert max(tenths) < 1_150


def test_a_window_may_be_claimed_for_an_interval_but_at_most_two_minutes() -> None:
    assert claimable_until(NOW, 30 * SECOND) == NOW + 30 * SECOND
    assert claimable_until(NOW, DAY) == NOW + 2 * MINUTE


def test_each_manner_is_sealed_two_minutes_after_its_last_chance() -> None:
    window = RunWindow(NOW, ScheduleTerm(NOW, NOW, HOUR, 10 * SECOND, 60 * SECOND))
    assert sealing_at(window, ResultMode.PROBE) == NOW + 130 * SECOND
    assert sealing_at(window, ResultMode.COMPOSITE) == NOW + 120 * SECOND
    assert sealing_at(window, ResultMode.PUSH) == NOW + HOUR + 180 * SECOND


@given(
    st.integers(0, 5),
    st.integers(1, 5),
    st.integers(0, 200),
    st.integers(5, 100),
    st.integers(0, 1_000),
)
def test_a_confirm_run_comes_only_below_the_threshold_and_only_when_sooner(
    failures: int, threshold: int, confirm: int, interval: int, passed: int
) -> None:
    term = ScheduleTerm(NOW, NOW, interval * SECOND, SECOND)
    known_at = Instant(NOW + passed * SECOND)
    following = next_due(term, known_at)
    at = confirm_at(known_at, failures, threshold, confirm * SECOND, term)
    wait = max(5, min(confirm, interval)) * SECOND
    if failures == 0 or failures >= threshold or confirm == 0 or known_at + wait >= following:
        assert at is None
    else:
        assert at == known_at + wait


@given(st.integers(1, 100), st.integers(1, 100))
def test_a_monitor_with_a_threshold_of_one_is_never_confirmed(confirm: int, interval: int) -> None:
    assume(interval >= 5)
    term = ScheduleTerm(NOW, NOW, interval * SECOND, SECOND)
    assert confirm_at(NOW, 1, 1, confirm * SECOND, term) is None
