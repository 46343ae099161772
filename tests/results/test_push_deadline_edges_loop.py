"""Deadlines of push monitors next to a pause and next to the creation of the monitor."""

import pytest

from leadline.daemon.loops.push_deadline_checker import PushDeadlineChecker
from leadline.storage.core.instant import MINUTE, SECOND, Instant
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.monitors.transactions.edit_monitor import edit_monitor
from leadline.storage.results.event_bus import Bus
from leadline.storage.results.transactions.record_results import record_results
from tests.support.worlds.world import REGIONS, START, World

PROMISE = 2 * MINUTE


async def heartbeat(world: World, row: MonitorRow, at: int) -> None:
    world.now = Instant(at)
    async with world.pool.transaction("heartbeat") as tx:
        await record_results(tx, [world.result(row, world.now, True)])


async def pause(world: World, row: MonitorRow) -> None:
    async with world.pool.transaction("pause") as tx:
        given = {"enabled": False}
        await edit_monitor(tx, world.editor, row.uid, given, world.keyring, REGIONS)


async def check(world: World, at: int) -> list[int]:
    """A process that starts now checks the deadlines. Returns all that were missed."""
    world.now = Instant(at)
    await world.listen(START, world.now)
    await PushDeadlineChecker(world.pool, Bus(), lambda: world.now, lambda: None).pass_once()
    rows = await world.rows("select ts from heartbeats where msg = 'push_missed' order by ts")
    return [ts for (ts,) in rows]


@pytest.mark.parametrize("before_us", [1, 50_000, 100_000, 3 * SECOND])
async def test_a_deadline_before_a_pause_is_missed_after_it(world: World, before_us: int) -> None:
    row = await world.monitor(type="push", interval_seconds=60, grace_seconds=60)
    await heartbeat(world, row, START + SECOND)
    deadline = START + SECOND + PROMISE
    world.now = Instant(deadline + before_us)
    await pause(world, row)
    assert await check(world, world.now + SECOND) == [deadline]
    assert await check(world, world.now + 10 * MINUTE) == [deadline]


async def test_a_deadline_after_a_pause_is_not_missed(world: World) -> None:
    row = await world.monitor(type="push", interval_seconds=60, grace_seconds=60)
    await heartbeat(world, row, START + SECOND)
    world.now = Instant(START + PROMISE)
    await pause(world, row)
    assert await check(world, START + PROMISE + 10 * SECOND) == []


async def test_a_heartbeat_right_after_the_creation_begins_the_wait(world: World) -> None:
    """The first term begins at the shard's `reserved_through`, which can be later than the
    heartbeat.
    """
    async with world.pool.transaction("ahead") as tx:
        await tx.execute(
            "insert into shards (org, region, reserved_through, sealed_through, settled_through,"
            " rolled_up_through) values (0, 'core', at(%(ahead)s), at(%(now)s), at(%(now)s),"
            " at(%(now)s))",
            ahead=Instant(START + 1_300_000),
            now=START,
        )
    row = await world.monitor(type="push", interval_seconds=60, grace_seconds=60)
    await heartbeat(world, row, START + 200_000)
    deadline = START + 200_000 + PROMISE
    assert await check(world, deadline + SECOND) == [deadline]
