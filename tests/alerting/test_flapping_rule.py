"""Flap damping, against a clerk who looks at the whole history each minute."""

from hypothesis import example, given
from hypothesis import strategies as st

from leadline.storage.alerting.rules.flapping import FlapState, changed, settled
from leadline.storage.core.instant import HOUR, MINUTE, Instant

START = 1_800_000_000_000_000


def at(minute: int) -> Instant:
    return Instant(START + minute * MINUTE)


@st.composite
def histories(draw: st.DrawFn) -> list[int]:
    """Minutes of the changes of a status: down, up, down and so on."""
    gaps = draw(st.lists(st.integers(1, 14) | st.integers(1, 80), max_size=40))
    minutes, now = [], 0
    for gap in gaps:
        now += gap
        minutes.append(now)
    return minutes


def flapping_minutes(changes: list[int], threshold: int, end: int) -> list[int]:
    """The minutes in which the monitor is flapping, from the specification."""
    found: list[int] = []
    settled_at = -1
    is_flapping = False
    for now in range(end):
        # A change in the minute in which it settles is the first one after it.
        if is_flapping and not any(now - 15 < change < now for change in changes):
            is_flapping, settled_at = False, now
        begun = [
            change for change in changes[::2] if now - 60 < change <= now and change >= settled_at
        ]
        if now in changes[::2] and len(begun) >= threshold:
            is_flapping = True
        if is_flapping:
            found.append(now)
    return found


@given(histories(), st.integers(2, 5), st.integers(1, 7))
@example([1, 2, 3, 18], 2, 1)
@example([1, 2, 3, 4, 19, 20, 21], 2, 1)
def test_a_monitor_is_flapping_when_the_clerk_says_so(
    changes: list[int], threshold: int, every: int
) -> None:
    end = (changes[-1] if changes else 0) + 40
    state, found = FlapState(), []
    for now in range(end):
        if state.is_settled(at(now)):
            state = settled(state)
        if now in changes:
            is_down = changes.index(now) % 2 == 0
            state = changed(state, at(now), threshold, is_down=is_down)
        if now % every == 0:
            # A pass that sees the same status again counts nothing.
            last = [change for change in changes if change <= now]
            if last:
                is_down = len(last) % 2 == 1
                assert changed(state, at(last[-1]), threshold, is_down=is_down) == state
        if state.is_flapping:
            found.append(now)
    assert found == flapping_minutes(changes, threshold, end)


@given(histories(), st.integers(2, 5))
def test_an_outage_that_lasts_ends_the_flapping_within_the_bound(
    changes: list[int], threshold: int
) -> None:
    state = FlapState()
    for number, minute in enumerate(changes):
        if state.is_settled(at(minute)):
            state = settled(state)
        state = changed(state, at(minute), threshold, is_down=number % 2 == 0)
        assert len(state.downs) <= threshold
        settles_at = state.settles_at()
        assert settles_at is None or settles_at == at(minute + 15)


def test_outages_an_hour_apart_do_not_count_together() -> None:
    state = FlapState()
    for hour in range(5):
        state = changed(state, Instant(START + hour * HOUR), 2, is_down=True)
        state = changed(state, Instant(START + hour * HOUR + MINUTE), 2, is_down=False)
        assert not state.is_flapping
