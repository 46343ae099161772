"""The product clock of a process: monotonic, continued during outages, and unavailable before the
first reading.
"""

import time

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.core.instant import MINUTE, SECOND, Instant
from leadline.storage.core.refusal import Unavailable
from leadline.storage.engine.product_clock import (
    FIRST_READINGS,
    SLOW_US,
    ProductClock,
    Reading,
)

START = 1_000 * MINUTE


class World:
    """A database clock and a monotonic clock, which the test advances."""

    def __init__(self) -> None:
        self.database = START
        self.through: int | None = None
        self.monotonic_us = 77
        self.answer_us = 0
        self.is_away = False
        self.clock = ProductClock(self.read, lambda: self.monotonic_us)

    async def read(self) -> Reading:
        await trio.lowlevel.checkpoint()
        if self.is_away:
            raise Unavailable("away")
        self.pass_us(self.answer_us)
        return Instant(self.database), None if self.through is None else Instant(self.through)

    def pass_us(self, elapsed_us: int) -> None:
        self.database += elapsed_us
        self.monotonic_us += elapsed_us


async def test_the_clock_raises_before_the_first_reading() -> None:
    world = World()
    with pytest.raises(RuntimeError, match="not read"):
        world.clock.now()
    await world.clock.refresh()
    assert world.clock.now() == world.database


async def test_a_database_clock_set_back_is_not_followed_and_reported() -> None:
    world = World()
    await world.clock.refresh()
    before = world.clock.now()
    world.database -= 60 * MINUTE
    await world.clock.refresh()
    assert world.clock.now() == before
    assert world.clock.skew_us == 60 * MINUTE
    assert world.clock.is_notably_off
    world.pass_us(10 * SECOND)
    assert world.clock.now() == before + 5 * SECOND


async def test_a_database_clock_set_forward_is_followed() -> None:
    world = World()
    await world.clock.refresh()
    world.database += 60 * MINUTE
    await world.clock.refresh()
    assert world.clock.now() == world.database
    assert world.clock.skew_us == 0


async def test_a_new_process_starts_after_the_time_of_others() -> None:
    world = World()
    world.through = world.database + 3 * SECOND
    await world.clock.refresh()
    assert world.clock.now() == world.through
    assert world.clock.skew_us == 3 * SECOND


async def test_a_slow_reading_moves_the_clock_no_further_than_it_must() -> None:
    world = World()
    await world.clock.refresh()
    world.answer_us = 9 * SECOND
    await world.clock.refresh()
    assert world.clock.now() == world.database
    assert world.clock.skew_us == 0
    world.database += MINUTE
    await world.clock.refresh()
    assert world.clock.now() >= world.database - world.answer_us


@given(st.lists(st.tuples(*[st.integers(0, 30 * SECOND)] * 3), min_size=1, max_size=20))
def test_the_clock_is_never_ahead_and_behind_by_at_most_the_quickest_reading(
    readings: list[tuple[int, int, int]],
) -> None:
    async def body() -> None:
        monotonic_us = 0
        way: list[int] = []

        async def read() -> Reading:
            nonlocal monotonic_us
            await trio.lowlevel.checkpoint()
            monotonic_us += way[0]
            said = START + monotonic_us
            monotonic_us += way[1]
            return Instant(said), None

        clock = ProductClock(read, lambda: monotonic_us)
        quickest = None
        for since, *way in readings:
            monotonic_us += since
            await clock.refresh()
            quickest = sum(way) if quickest is None else min(quickest, sum(way))
            behind = START + monotonic_us - clock.now()
            assert 0 <= behind <= quickest

    trio.run(body)


async def test_a_process_begins_with_a_quick_reading() -> None:
    world = World()
    answers = iter([7 * SECOND, 0])

    async def read() -> Reading:
        world.answer_us = next(answers)
        said, through = await world.read()
        return Instant(said - world.answer_us), through

    clock = ProductClock(read, lambda: world.monotonic_us)
    await clock.refresh()
    assert clock.now() == world.database


async def test_a_process_begins_also_if_every_reading_is_slow() -> None:
    world = World()
    world.answer_us = SLOW_US + 1
    began = world.monotonic_us
    await world.clock.refresh()
    assert world.monotonic_us - began == FIRST_READINGS * world.answer_us
    assert world.clock.now() == world.database


async def test_the_clock_continues_during_an_outage() -> None:
    world = World()
    await world.clock.refresh()
    world.is_away = True
    world.pass_us(MINUTE)
    with pytest.raises(Unavailable):
        await world.clock.refresh()
    assert world.clock.now() == world.database
    world.is_away = False
    world.database += MINUTE
    await world.clock.refresh()
    assert world.clock.now() == world.database


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="this system has no such clock")
async def test_the_clock_is_right_after_suspend(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    clock = ProductClock(world.read)
    await clock.refresh()
    before = clock.now()
    true_ns = time.clock_gettime_ns

    def after_an_hour_of_sleep(which: int) -> int:
        slept_ns = 60 * MINUTE * 1000 if which == time.CLOCK_BOOTTIME else 0
        return true_ns(which) + slept_ns

    monkeypatch.setattr(time, "clock_gettime_ns", after_an_hour_of_sleep)
    assert clock.now() - before >= 60 * MINUTE
