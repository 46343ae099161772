"""The product's clock in a process: monotone, carried over outages, not read before it is known."""

import time

import pytest
import trio
import trio.testing

from leadline.storage.core.instant import MINUTE, SECOND, Instant
from leadline.storage.core.refusal import Unavailable
from leadline.storage.engine.product_clock import (
    READ_SECONDS,
    SLOW_US,
    STALE_US,
    ProductClock,
    Reading,
)


class World:
    """A database's clock and a monotonic one, moved by hand."""

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


async def test_there_is_no_time_before_the_first_reading() -> None:
    world = World()
    with pytest.raises(RuntimeError, match="not read"):
        world.clock.now()
    await world.clock.refresh()
    assert world.clock.now() == world.database


async def test_a_clock_set_back_is_not_followed_back_and_told_of() -> None:
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


async def test_a_clock_set_forward_is_followed_at_once() -> None:
    world = World()
    await world.clock.refresh()
    world.database += 60 * MINUTE
    await world.clock.refresh()
    assert world.clock.now() == world.database
    assert world.clock.skew_us == 0


async def test_a_new_process_does_not_go_back_behind_what_others_showed() -> None:
    world = World()
    world.through = world.database + 3 * SECOND
    await world.clock.refresh()
    assert world.clock.now() == world.through
    assert world.clock.skew_us == 3 * SECOND


async def test_a_slow_reading_is_left_out_until_nothing_better_came_for_long() -> None:
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


async def test_while_the_database_is_away_it_is_carried(autojump_clock) -> None:
    world = World()
    async with trio.open_nursery() as nursery:
        await nursery.start(world.clock.run)
        world.is_away = True
        world.pass_us(MINUTE)
        await trio.sleep(3 * READ_SECONDS)
        assert world.clock.now() == world.database
        world.is_away = False
        world.database += MINUTE
        await trio.sleep(READ_SECONDS + 1)
        assert world.clock.now() == world.database
        nursery.cancel_scope.cancel()


async def test_a_first_reading_that_fails_is_told_to_who_starts_it() -> None:
    world = World()
    world.is_away = True
    with pytest.RaisesGroup(Unavailable):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep, 0)
            await nursery.start(world.clock.run)


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="this system has no such clock")
async def test_a_machine_that_slept_wakes_at_the_right_time(
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
