"""The product clock of a process: monotonic, continued during outages, and unavailable before the
first reading.
"""

import time

import pytest
import trio
import trio.testing

from leadline.storage.core.instant import MINUTE, SECOND, Instant
from leadline.storage.core.refusal import Unavailable
from leadline.storage.engine.product_clock import (
    SLOW_US,
    STALE_US,
    ProductClock,
    Reading,
)


class World:
    """A database clock and a monotonic clock, which the test advances."""

    def __init__(self) -> None:
        self.database = 1_000 * MINUTE
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


async def test_a_slow_reading_is_used_only_without_a_better_one() -> None:
    world = World()
    await world.clock.refresh()
    world.database += MINUTE
    world.answer_us = SLOW_US + 1
    before = world.clock.now()
    await world.clock.refresh()
    assert world.clock.now() == before + world.answer_us
    world.pass_us(STALE_US)
    await world.clock.refresh()
    assert world.clock.now() >= before + MINUTE


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
