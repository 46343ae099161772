"""The displayed status of a monitor: its newest result, while that is fresh under its own term."""

from typing import Any

from leadline.daemon.loops.schedule_ticker import Ticker
from leadline.storage.core.instant import HOUR, MINUTE, SECOND, Instant
from leadline.storage.monitors.queries.monitors import select_standings, status_of
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.monitors.transactions.edit_monitor import edit_monitor
from leadline.storage.results.transactions.record_results import record_results
from tests.support.worlds.world import REGIONS, START, World


async def up_at(world: World, row: MonitorRow, instant: int) -> None:
    async with world.pool.transaction("record") as tx:
        await record_results(tx, [world.result(row, Instant(instant), True)])


async def edit_at(world: World, row: MonitorRow, instant: int, **given: Any) -> None:
    world.now = Instant(instant)
    async with world.pool.transaction("edit") as tx:
        await edit_monitor(tx, world.editor, row.uid, given, world.keyring, REGIONS)


async def shown(world: World, row: MonitorRow, instant: int) -> str:
    async with world.pool.transaction("look", read_only=True) as tx:
        found = await select_standings(tx, [row.key])
    return status_of(found[row.key], row.type, Instant(instant))


async def test_a_result_is_fresh_as_long_as_its_own_term_allows(world: World) -> None:
    row = await world.monitor(interval_seconds=3600)
    at = START + MINUTE
    await up_at(world, row, at)
    await edit_at(world, row, at + HOUR, interval_seconds=60)
    assert await shown(world, row, at + 3 * HOUR - 1) == "up"
    assert await shown(world, row, at + 3 * HOUR) == "pending"


async def test_a_longer_interval_makes_no_old_result_fresh(world: World) -> None:
    row = await world.monitor(interval_seconds=60)
    at = START + MINUTE
    await up_at(world, row, at)
    await edit_at(world, row, at + HOUR, interval_seconds=86_400)
    assert await shown(world, row, at + HOUR) == "pending"


async def test_results_from_before_a_pause_are_stale_after_it(world: World) -> None:
    row = await world.monitor(interval_seconds=60)
    at = START + MINUTE
    await up_at(world, row, at)
    await edit_at(world, row, at + SECOND, enabled=False)
    assert await shown(world, row, world.now) == "pending"
    await edit_at(world, row, at + 10 * SECOND, enabled=True)
    assert await shown(world, row, world.now) == "pending"
    await up_at(world, row, at + 11 * SECOND)
    assert await shown(world, row, at + 12 * SECOND) == "up"


async def test_a_push_is_fresh_until_its_deadline_which_an_edit_restarts(world: World) -> None:
    row = await world.monitor(type="push", interval_seconds=3600, grace_seconds=60)
    at = START + MINUTE
    await up_at(world, row, at)
    edited = at + 50 * MINUTE
    await edit_at(world, row, edited, interval_seconds=1800)
    deadline = edited + 31 * MINUTE
    assert await shown(world, row, deadline - 1) == "up"
    # The deadline checker gets a short time to record the failure.
    assert await shown(world, row, deadline + 30 * SECOND) == "pending"


async def test_the_run_after_a_resume_is_due_when_the_new_term_begins(
    world: World,
) -> None:
    """Windows are reserved ahead, and a term begins after the reserved time. A run before that
    would be older than the pause and would not count for a whole interval.
    """
    row = await world.monitor(interval_seconds=3600)
    await Ticker(world.pool, lambda: world.now).pass_once()
    await edit_at(world, row, START + SECOND // 10, enabled=False)
    await world.forget_jobs()
    await edit_at(world, row, START + SECOND // 5, enabled=True)
    ((due,),) = await world.rows("select due_at from jobs")
    await up_at(world, row, due)
    assert await shown(world, row, due + SECOND) == "up"
