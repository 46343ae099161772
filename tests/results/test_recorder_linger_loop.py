"""How long a result waits for its batch: one that changes a status does not wait."""

import pytest
import trio

from leadline.daemon.loops import result_recorder
from leadline.daemon.loops.result_recorder import (
    LINGER_SECONDS,
    STEADY_LINGER_SECONDS,
    Recorder,
)
from leadline.storage.core.instant import SECOND, Instant
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.results.event_bus import Bus
from leadline.storage.results.rules.incoming_result import IncomingResult, StoreResult
from tests.support.worlds.world import World

HANGS_SECONDS = 30


def a_run(
    world: World, row: MonitorRow, *, up: bool = True, left_us: int = 20 * SECOND
) -> IncomingResult:
    until = Instant(world.now + left_us)
    return world.result(row, world.now, up, covered_until=until, windowed=True, dues=(world.now,))


async def test_only_a_steady_run_waits_for_a_larger_batch(world: World) -> None:
    probed, pushed = await world.monitor(), await world.monitor(type="push")
    recorder = Recorder(world.pool, Bus(), lambda: world.now)

    def linger(arrival: IncomingResult, *, may_wait: bool = True) -> float:
        return recorder._linger_seconds(arrival, may_wait=may_wait)

    assert linger(a_run(world, probed)) == LINGER_SECONDS, "its status is not known yet"
    async with trio.open_nursery() as nursery:
        await nursery.start(recorder.run)
        with trio.fail_after(HANGS_SECONDS):
            await recorder.record(a_run(world, probed))
            await recorder.record(world.result(pushed, world.now, True))
        world.now = Instant(world.now + 20 * SECOND)
        assert linger(a_run(world, probed)) == STEADY_LINGER_SECONDS
        assert linger(a_run(world, probed), may_wait=False) == LINGER_SECONDS
        assert linger(a_run(world, probed, up=False)) == 0.0
        assert linger(a_run(world, probed, left_us=SECOND)) == 0.5, "it must not become late"
        assert linger(a_run(world, probed, left_us=-SECOND)) == 0.0
        nursery.cancel_scope.cancel()


async def test_a_push_waits_only_where_others_come_with_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Pushes that follow each other are one batch, however slow this host is.
    monkeypatch.setattr(result_recorder, "PUSH_LINGER_SECONDS", 0.5)
    rows = [await world.monitor(type="push") for _ in range(3)]
    recorder = Recorder(world.pool, Bus(), lambda: world.now)

    def pushes() -> list[IncomingResult]:
        world.now = Instant(world.now + SECOND)
        return [world.result(row, world.now, True) for row in rows]

    def linger() -> float:
        return recorder._linger_seconds(pushes()[0], may_wait=False)

    async with trio.open_nursery() as nursery:
        await nursery.start(recorder.run)
        with trio.fail_after(HANGS_SECONDS):
            await recorder.record_all(pushes())
            await recorder.record(pushes()[0])
            assert linger() == 0.0
            async with trio.open_nursery() as senders:
                async with world.pool.transaction("block") as tx:
                    await tx.execute("lock table heartbeats in access exclusive mode")
                    senders.start_soon(recorder.record, pushes()[0])
                    while not recorder._unanswered:
                        await trio.lowlevel.checkpoint()
                    assert linger() == 0.5, "another push is not answered yet"
                    first, second, _ = pushes()
                    senders.start_soon(recorder.record_all, [first, second])
                    while len(recorder._unanswered) < 3:
                        await trio.lowlevel.checkpoint()
            assert linger() == 0.5, "the last batch had two pushes"
            await recorder.record(pushes()[0])
            assert linger() == 0.0
        nursery.cancel_scope.cancel()


async def test_a_change_takes_the_steady_results_with_it(world: World) -> None:
    rows = [await world.monitor() for _ in range(3)]
    recorder = Recorder(world.pool, Bus(), lambda: world.now)
    answers: list[StoreResult] = []
    async with trio.open_nursery() as nursery:
        await nursery.start(recorder.run)
        with trio.fail_after(HANGS_SECONDS):
            for row in rows:
                await recorder.record(a_run(world, row))
            world.now = Instant(world.now + 20 * SECOND)
            for row in rows[:2]:
                await recorder.hand_over(a_run(world, row), answers.append, may_wait=True)
            await recorder.record(a_run(world, rows[2], up=False))
        assert len(answers) == 2, "a batch is stored as a whole"
        nursery.cancel_scope.cancel()
