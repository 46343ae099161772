"""The product's clock, through set clocks, restarts and several processes."""

from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.core.clock import Clock, started
from leadline.storage.core.instant import HOUR, MINUTE, SECOND, Instant

NOW = Instant(1_800_000_000 * SECOND)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 100), st.integers(-10_000, 10_000), st.none() | st.integers(-50, 50)
        ),
        max_size=30,
    )
)
def test_it_never_runs_back_and_never_behind_the_database(
    steps: list[tuple[int, int, int | None]],
) -> None:
    clock = started(0, NOW, None)
    monotonic, shown = 0, clock.at(0)
    for passed, database_off, through_off in steps:
        for later in range(passed + 1):
            assert clock.at(monotonic + later) >= shown
            shown = clock.at(monotonic + later)
        monotonic += passed
        database = Instant(NOW + monotonic + database_off)
        through = None if through_off is None else Instant(shown + through_off)
        clock = clock.read(monotonic, database, through)
        assert clock.at(monotonic) == max(shown, database, through or database)
        shown = clock.at(monotonic)


@given(st.integers(0, 1_000), st.integers(0, 5_000))
def test_ahead_it_goes_at_half_speed_until_it_is_caught_up(ahead: int, elapsed: int) -> None:
    clock = Clock(Instant(NOW + ahead), 0, ahead)
    expected = NOW + ahead
    for tick in range(elapsed):
        # Half speed: of two ticks one, as long as the database is behind.
        database = NOW + tick + 1
        if expected <= database - 1 or (tick % 2 == 1 and expected < NOW + 2 * ahead):
            expected += 1
    assert clock.at(elapsed) == expected
    if elapsed >= 2 * ahead:
        assert clock.at(elapsed) == NOW + elapsed


def test_it_jumps_forward_immediately() -> None:
    clock = started(0, NOW, None).read(SECOND, Instant(NOW + HOUR), None)
    assert clock.at(SECOND) == NOW + HOUR
    assert clock.ahead_us == 0


def test_a_host_set_back_an_hour_slows_it_for_two_and_is_reported() -> None:
    clock = started(0, NOW, None).read(SECOND, Instant(NOW + SECOND - HOUR), None)
    assert clock.at(SECOND) == NOW + SECOND
    assert clock.is_notably_off
    assert clock.at(SECOND + HOUR) == NOW + SECOND + HOUR // 2
    assert clock.at(SECOND + 2 * HOUR) == NOW + SECOND + HOUR
    assert clock.at(SECOND + 3 * HOUR) == NOW + SECOND + 2 * HOUR


def test_a_restart_does_not_go_back_behind_the_shown_time() -> None:
    again = started(0, Instant(NOW - HOUR), NOW)
    assert again.at(0) == NOW
    assert again.at(2 * SECOND) == NOW + SECOND


def test_a_difference_of_five_minutes_is_not_yet_reported() -> None:
    assert not Clock(NOW, 0, 5 * MINUTE).is_notably_off
    assert Clock(NOW, 0, 5 * MINUTE + 1).is_notably_off
