"""The histogram of the event loop lag counts each wake-up once, up to its bound."""

from hypothesis import given
from hypothesis import strategies as st

from leadline.probes.check.loop_lag import LATENESS_US, TICK_SECONDS, LoopLag


@given(st.lists(st.integers(-1_000, 1_000_000), max_size=30))
def test_every_wake_is_counted_by_its_delay(late: list[int]) -> None:
    lag = LoopLag()
    lag._slept_at_us = 0
    for each in late:
        lag._note(int(TICK_SECONDS * 1e6) + each)
    for place, bound in enumerate(LATENESS_US):
        assert sum(lag.lateness[: place + 1]) == sum(each <= bound for each in late)
    assert sum(lag.lateness) == len(late)
    assert lag.late_us == sum(max(each, 0) for each in late)
