"""Composites while several processes evaluate them and users edit them."""

import pytest
import trio

from leadline.daemon.loops.composite_evaluator import CompositeEvaluator
from leadline.storage.core.instant import SECOND, Instant
from leadline.storage.monitors.transactions.edit_monitor import edit_monitor
from leadline.storage.results.event_bus import Bus
from leadline.storage.results.queries.composites import select_due_windows
from tests.results.test_composites_storage import Watch
from tests.support.worlds.blocked import until_blocked
from tests.support.worlds.world import REGIONS, START, World


@pytest.fixture
def watch(world: World) -> Watch:
    return Watch(world)


async def test_an_evaluator_of_a_settled_window_still_answers_the_call(
    watch: Watch,
) -> None:
    member = await watch.world.monitor()
    row = await watch.composite([member])
    await watch.is_now(member, True)
    watch.world.now = Instant(START + 60 * SECOND)
    await watch.ticker.pass_once()
    async with watch.world.pool.transaction("windows") as tx:
        windows = await select_due_windows(tx, watch.world.now, 10)
    assert [window.monitor for window in windows] == [row.id]
    await watch.evaluator.evaluate(watch.world.now, windows, [])
    watch.world.now = Instant(watch.world.now + SECOND)
    await watch.is_now(member, False)
    # A slower evaluator still works on the same window and also takes the call.
    slower = CompositeEvaluator(watch.world.pool, Bus())
    await slower.evaluate(watch.world.now, windows, [])
    await watch.composer.pass_once()
    assert (await watch.world.state(row))[0] == "down"
    assert await watch.calls() == []


async def test_a_call_that_meets_an_edit_is_answered(watch: Watch) -> None:
    member = await watch.world.monitor()
    row = await watch.composite([member])
    await watch.is_now(member, True)
    await watch.composer.pass_once()
    edited, looked = trio.Event(), trio.Event()

    async def rename() -> None:
        given = {"name": "another name"}
        world = watch.world
        async with world.pool.transaction("edit") as tx:
            await edit_monitor(tx, world.editor, row.uid, given, world.keyring, REGIONS)
            edited.set()
            await looked.wait()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(rename)
        await edited.wait()
        watch.world.now = Instant(watch.world.now + SECOND)
        await watch.is_now(member, False)
        nursery.start_soon(watch.composer.pass_once)
        await until_blocked(watch.world.pool)
        looked.set()
    await watch.composer.pass_once()
    assert (await watch.world.state(row))[0] == "down"
