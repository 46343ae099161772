"""The displayed status of a monitor: its newest result, while that is fresh under its own term.

The metrics per monitor show the same status.
"""

from typing import Any

from leadline.daemon.loops.metric_samplers import STALE_US, InstallationSampler
from leadline.daemon.loops.schedule_ticker import Ticker
from leadline.storage.core.instant import HOUR, MINUTE, SECOND, Instant
from leadline.storage.monitors.queries.monitors import select_standings, status_of
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.monitors.transactions.edit_monitor import edit_monitor
from leadline.storage.results.queries.monitor_samples import MonitorSample, select_monitor_samples
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


# -- metrics per monitor ---------------------------------------------------------------------------


async def stored_at(world: World, row: MonitorRow, instant: int, up: bool) -> None:
    async with world.pool.transaction("record") as tx:
        await record_results(tx, [world.result(row, Instant(instant), up, latency_ms=7)])


async def sampled(world: World, most: int) -> tuple[dict[str, MonitorSample], int]:
    async with world.pool.transaction("look", read_only=True) as tx:
        found = await select_monitor_samples(tx, most)
    return {one.monitor: one for one in found.samples}, found.left_out


async def test_a_sample_has_a_status_only_if_it_is_fresh(world: World) -> None:
    up, down, old, paused, new = [await world.monitor(interval_seconds=60) for _ in range(5)]
    now = START + 3 * HOUR
    await stored_at(world, old, START + MINUTE, True)
    await stored_at(world, up, now - 5 * SECOND, True)
    await stored_at(world, down, now - 5 * SECOND, False)
    await stored_at(world, paused, now - 5 * SECOND, True)
    world.now = Instant(now)
    async with world.pool.transaction("edit") as tx:
        await edit_monitor(tx, world.editor, paused.uid, {"enabled": False}, world.keyring, REGIONS)
    rows = [up, down, old, paused, new]
    found, left_out = await sampled(world, 100)
    assert left_out == 0
    assert {row.slug: found[row.slug].is_up for row in rows} == {
        up.slug: True,
        down.slug: False,
        old.slug: None,
        paused.slug: None,
        new.slug: None,
    }
    assert {row.slug: found[row.slug].latency_ms for row in rows} == {
        up.slug: 7,
        down.slug: 7,
        old.slug: None,
        paused.slug: None,
        new.slug: None,
    }
    assert found[old.slug].last_at == START + MINUTE
    assert found[new.slug].last_at is None
    async with world.pool.transaction("look", read_only=True) as tx:
        standings = await select_standings(tx, [row.key for row in rows])
    for row in rows:
        shown = status_of(standings[row.key], row.type, world.now)
        is_up = {"up": True, "down": False, "pending": None}[shown]
        assert found[row.slug].is_up is is_up


async def test_a_sample_shows_maintenance(world: World) -> None:
    row, other = await world.monitor(interval_seconds=60), await world.monitor(interval_seconds=60)
    async with world.pool.transaction("plan") as tx:
        await tx.execute(
            "insert into maintenances (org, uid, project, monitor, starts_at, ends_at,"
            " created_at) values (%(org)s, gen_random_uuid(), %(project)s,"
            " %(monitor)s, at(%(start)s), at(%(end)s), now())",
            org=row.org,
            project=row.project,
            monitor=row.id,
            start=world.now - SECOND,
            end=world.now + HOUR,
        )
    found, _ = await sampled(world, 100)
    assert found[row.slug].in_maintenance
    assert not found[other.slug].in_maintenance


async def test_monitors_beyond_the_limit_are_counted(world: World) -> None:
    rows = [await world.monitor(interval_seconds=60) for _ in range(3)]
    found, left_out = await sampled(world, 2)
    assert set(found) == {row.slug for row in rows[:2]}
    assert left_out == 1


async def test_an_old_sample_is_not_reported(world: World) -> None:
    await world.monitor(interval_seconds=60)
    sampler = InstallationSampler(world.pool, lambda: world.now, 10)
    assert sampler.monitors is None
    await sampler.pass_once()
    assert sampler.monitors is not None
    world.now = Instant(world.now + STALE_US)
    assert sampler.monitors is not None
    world.now = Instant(world.now + 1)
    assert sampler.monitors is None
