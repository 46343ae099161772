"""What a prober takes up and what it ends: with probes that are told what to say."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast
from uuid import UUID

import pytest
import trio
from uuid_utils.compat import uuid7

from leadline.daemon.loops import prober as prober_module
from leadline.daemon.loops.catalogue import Catalogue
from leadline.daemon.loops.prober import Prober
from leadline.probes.check import Check
from leadline.probes.reach.outward import Reach
from leadline.probes.result import Outcome, Phases, Result
from leadline.storage.bus import Bus
from leadline.storage.recorder import Recorder
from leadline.storage.rules.instant import SECOND, Instant
from tests.world import START, World

Says = Callable[[Check], bool]


def fake_run(says: Says) -> Callable[..., Any]:
    async def run(check: Check, _reach: Reach, clock: Callable[[], Instant]) -> Result:
        await trio.lowlevel.checkpoint()
        outcome = Outcome.UP if says(check) else Outcome.DOWN
        return Result(clock(), outcome, 1, None, "", Phases())

    return run


@asynccontextmanager
async def probing(
    world: World, process: UUID, regions: tuple[str, ...] = ("core",), *, leases: bool = True
) -> AsyncIterator[Prober]:
    recorder = Recorder(world.pool, Bus(), lambda: world.now)
    catalogue = Catalogue(world.pool, world.keyring, lambda: world.now)
    prober = Prober(
        world.pool,
        process,
        regions,
        catalogue,
        recorder,
        cast("Reach", None),
        trio.CapacityLimiter(100),
        lambda: world.now,
        leases=leases,
    )
    async with trio.open_nursery() as recording:
        await recording.start(recorder.run)
        async with trio.open_nursery() as running:
            await running.start(prober.run)
            yield prober
            prober.close()
        await recorder.close()


async def settled(world: World, query: str, expected: list[tuple[Any, ...]]) -> None:
    """Waits until a query answers so; the test fails where it never does."""
    with trio.fail_after(5):
        while await world.rows(query) != expected:  # noqa: ASYNC110 - another connection writes
            await trio.sleep(0.01)


async def test_each_failure_below_the_threshold_is_confirmed_and_not_only_the_first(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prober_module, "run", fake_run(lambda _check: False))
    row = await world.monitor(
        failure_threshold=4, interval_seconds=3600, confirm_interval_seconds=10
    )
    async with probing(world, uuid7()) as prober:
        for failures in (1, 2, 3):
            await prober.pass_once()
            await settled(world, "select failures from monitor_states", [(failures,)])
            await settled(world, "select reason from jobs", [("confirm",)])
            world.now = Instant(world.now + 11 * SECOND)
        await prober.pass_once()
        await settled(world, "select status, failures from monitor_states", [("down", 4)])
    assert [ts - START for ts, _, _ in await world.beats(row)] == [
        n * 11 * SECOND for n in range(4)
    ]


async def test_while_no_permit_is_free_edits_are_read_and_finished_slices_dropped(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prober_module, "run", fake_run(lambda _check: True))
    await world.monitor()
    async with probing(world, uuid7()) as prober:
        permits = prober._permits

        async def taken_meanwhile(*_given: Any) -> dict[Any, Any]:
            for n in range(100):
                permits.acquire_on_behalf_of_nowait(n)
            return {}

        # The last permit goes between the question how many are free and the taking of one.
        monkeypatch.setattr(prober._catalogue, "find", taken_meanwhile)
        with trio.fail_after(2):
            await prober.pass_once()
        for n in range(100):
            permits.release_on_behalf_of(n)
        await settled(world, "select 1 from jobs", [])
