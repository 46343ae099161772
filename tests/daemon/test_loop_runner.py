"""Pace of a loop: work wakes it, known instants end its rest, and a hung pass is noticed."""

from collections.abc import Callable

import pytest
import trio
from trio.testing import MockClock

from leadline.daemon.process.loop_runner import run_loop
from leadline.daemon.runtime.limits import WATCHDOG_STALE_SECONDS
from leadline.daemon.runtime.supervisor import LoopHeartbeats
from leadline.daemon.runtime.wake_event import STAGGER, WakeEvent, staggered
from leadline.storage.core.refusal import Unavailable

PAUSE, REST = 1.0, 100.0


class Loop:
    """Loop that records the instants of its passes."""

    def __init__(self) -> None:
        self.passes: list[float] = []
        self.asked: list[float] = []
        self.wake = WakeEvent()
        self.heartbeats = LoopHeartbeats()
        self.during: Callable[[], None] = lambda: None
        self.hangs = False

    async def pass_once(self) -> None:
        self.passes.append(trio.current_time())
        self.during()
        if self.hangs:
            await trio.sleep_forever()

    async def run(self) -> None:
        await run_loop(
            "loop",
            self.pass_once,
            PAUSE,
            lambda seconds: self.heartbeats.beat("loop", seconds),
            wake=self.wake,
            rest_seconds=lambda: REST,
            after_work=lambda: self.asked.append(trio.current_time()),
        )


@pytest.fixture
async def loop(nursery: trio.Nursery) -> Loop:
    made = Loop()
    nursery.start_soon(made.run)
    await trio.testing.wait_all_tasks_blocked()
    return made


def since(loop: Loop) -> list[float]:
    return [at - loop.passes[0] for at in loop.passes]


async def test_a_loop_without_work_rests(autojump_clock: MockClock, loop: Loop) -> None:
    await trio.sleep(2.5 * REST)
    assert since(loop) == pytest.approx([0, REST, 2 * REST])
    assert len(loop.asked) == 1, "a rest that ends by itself has changed nothing"


async def test_work_ends_a_rest_immediately(autojump_clock: MockClock, loop: Loop) -> None:
    await trio.sleep(7)
    loop.wake.set()
    await trio.testing.wait_all_tasks_blocked()
    assert since(loop) == pytest.approx([0, 7])
    assert len(loop.asked) == 2, "the pass can have changed what is due"


async def test_a_known_instant_ends_a_rest(autojump_clock: MockClock, loop: Loop) -> None:
    loop.wake.set_at(trio.current_time() + 30)
    loop.wake.set_at(trio.current_time() + 20)
    await trio.sleep(25)
    assert since(loop) == pytest.approx([0, 20])
    await trio.sleep(REST - 10)
    assert since(loop) == pytest.approx([0, 20]), "the pass has used the instant"


async def test_work_that_stays_due_is_tried_at_each_pause(
    autojump_clock: MockClock, loop: Loop
) -> None:
    loop.during = lambda: loop.wake.set_at(trio.current_time())
    loop.wake.set()
    await trio.sleep(3.5 * PAUSE)
    assert since(loop) == pytest.approx([0, 0, PAUSE, 2 * PAUSE, 3 * PAUSE])


async def test_work_during_a_pass_is_not_lost(autojump_clock: MockClock, loop: Loop) -> None:
    loop.during = lambda: loop.wake.set() if len(loop.passes) == 2 else None
    loop.wake.set()
    await trio.testing.wait_all_tasks_blocked()
    assert len(loop.passes) == 3


async def test_a_database_that_is_away_is_tried_soon(autojump_clock: MockClock, loop: Loop) -> None:
    def fail() -> None:
        raise Unavailable("away")

    loop.during = fail
    loop.wake.set()
    await trio.sleep(3)
    assert since(loop) == pytest.approx([0, 0, 0.5, 1.5])


async def test_a_resting_loop_is_not_stale_and_a_hung_one_is(
    autojump_clock: MockClock, loop: Loop
) -> None:
    await trio.sleep(REST - 1)
    assert loop.heartbeats.stale() == []
    loop.hangs = True
    loop.wake.set()
    await trio.sleep(WATCHDOG_STALE_SECONDS + 1)
    assert loop.heartbeats.stale() == ["loop"]


def test_a_staggered_rest_is_never_longer() -> None:
    rests = {staggered(REST) for _ in range(1_000)}
    assert (1 - STAGGER) * REST <= min(rests) < max(rests) <= REST
