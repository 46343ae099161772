"""The lag of the event loop: each wake-up counts once, and each stall of a run is seen."""

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from leadline.probes.check.loop_lag import LATENESS_US, REST_SECONDS, TICK_SECONDS, LoopLag


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


async def test_the_watcher_rests_while_no_run_is_in_progress(
    nursery: trio.Nursery, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    lag = _watched(monkeypatch)
    await nursery.start(lag.watch)
    await trio.sleep(60)
    assert sum(lag.lateness) <= 60 / REST_SECONDS + 1
    lag.begin()
    before = sum(lag.lateness)
    await trio.sleep(60)
    assert sum(lag.lateness) - before >= 60 / TICK_SECONDS - 2
    lag.end()
    await trio.sleep(1)
    before = sum(lag.lateness)
    await trio.sleep(60)
    assert sum(lag.lateness) - before <= 60 / REST_SECONDS + 1
    assert autojump_clock.autojump_threshold == 0


@given(
    st.lists(st.tuples(st.floats(0.0, 3.0), st.floats(0.0, 2.0), st.booleans()), max_size=12),
)
@settings(max_examples=60)
def test_no_stall_of_a_run_is_missed(steps: list[tuple[float, float, bool]]) -> None:
    """A run begins after each pause, and the loop stalls in it. Other runs go on meanwhile."""

    async def follow(monkeypatch: pytest.MonkeyPatch) -> None:
        stalled = [0.0]
        lag = _watched(monkeypatch, stalled)
        began: list[int] = []
        async with trio.open_nursery() as nursery:
            await nursery.start(lag.watch)
            for pause, stall, ends in steps:
                await trio.sleep(pause)
                began.append(lag.begin())
                stalled[0] += stall
                # Neither before the watcher has run, nor afterwards.
                assert lag.stalled_since(began[-1]) >= stall * 1e6 - TICK_SECONDS * 1e6 - 1
                await trio.sleep(0.001)
                for one in began:
                    seen = lag.stalled_since(one)
                    assert seen >= stall * 1e6 - TICK_SECONDS * 1e6 - 1_001
                    assert seen <= (lag.now_us() - one)
                if ends:
                    began.pop()
                    lag.end()
            nursery.cancel_scope.cancel()

    with pytest.MonkeyPatch.context() as monkeypatch:
        trio.run(follow, monkeypatch, clock=MockClock(autojump_threshold=0))


def _watched(monkeypatch: pytest.MonkeyPatch, stalled: list[float] | None = None) -> LoopLag:
    """Returns a lag on the clock of Trio plus the seconds of the scripted stalls."""
    added = stalled if stalled is not None else [0.0]

    def now_us() -> int:
        return int((trio.current_time() + added[0]) * 1_000_000)

    monkeypatch.setattr(LoopLag, "now_us", staticmethod(now_us))
    return LoopLag()
