"""Figures from stored sums and from results: no time is counted twice or left out."""

from functools import reduce
from typing import Any

import pytest
import trio

from leadline.daemon.loops import figure_repairer
from leadline.daemon.loops.figure_repairer import Repairer
from leadline.daemon.loops.monitor_sealer import MonitorSealer
from leadline.daemon.loops.schedule_ticker import Ticker
from leadline.storage.core.instant import DAY, HOUR, MINUTE, Instant
from leadline.storage.engine.pools import Rejected, Tx
from leadline.storage.figures import tables as figures
from leadline.storage.figures.queries.availability import (
    NOTHING,
    add,
    select_days,
    select_stored_sums,
    select_sums,
)
from leadline.storage.figures.queries.monitor_time import MonitorTime
from leadline.storage.figures.rows import DueRepair
from leadline.storage.figures.transactions import roll_up_hour
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.monitors.transactions.edit_monitor import edit_monitor
from leadline.storage.results.rules.incoming_result import StoreOutcome
from leadline.storage.results.transactions.record_missed_pushes import record_missed_pushes
from leadline.storage.results.transactions.record_results import record_results
from leadline.storage.scheduling.queries import shards
from tests.support.worlds.blocked import until_blocked
from tests.support.worlds.world import REGIONS, START, World


async def record(
    world: World, row: MonitorRow, *instants: int, up: bool = True
) -> list[StoreOutcome]:
    async with world.pool.transaction("record") as tx:
        arrivals = [world.result(row, Instant(at), up) for at in instants]
        answers, _ = await record_results(tx, arrivals)
    return [answer.fate for answer in answers]


async def pass_until(world: World, until: int, step_us: int = 10 * MINUTE) -> None:
    ticker, sealer = (kind(world.pool, lambda: world.now) for kind in (Ticker, MonitorSealer))
    while world.now < until:
        world.now = Instant(min(world.now + step_us, until))
        await ticker.pass_once()
        await sealer.pass_once()


async def days_of(world: World, row: MonitorRow, days: int) -> list[MonitorTime]:
    async with world.pool.transaction("days", read_only=True) as tx:
        found = await select_days(tx, {row.key: row.type}, tx.now, days)
        sums = await select_sums(tx, {row.key: row.type}, tx.now, days)
    measured = [one for _, one in found[row.key].days]
    assert sums[row.key].measured == reduce(add, measured)
    return measured


async def execute(world: World, query: str, **given: Any) -> None:
    async with world.pool.transaction("execute") as tx:
        await tx.execute(query, **given)


async def test_where_another_region_lags_behind_no_hour_is_counted_twice(world: World) -> None:
    row = await world.monitor(interval_seconds=60)
    await world.monitor(region="eu", type="push")
    await record(world, row, *range(START, START + 3 * HOUR, MINUTE))
    await pass_until(world, START + 4 * HOUR)
    await execute(
        world,
        "update shards set rolled_up_through = at(%(at)s) where region = 'eu'",
        at=Instant(START + HOUR),
    )
    (today,) = await days_of(world, row, 1)
    assert today.total == 180
    assert today.split.good_us == 3 * HOUR - MINUTE + 3 * MINUTE


async def test_a_run_before_the_first_term_adds_no_time(world: World) -> None:
    world.now = Instant(START + HOUR)
    async with world.pool.transaction("shard") as tx:
        # Windows are reserved ahead, so the first term begins after the extra run.
        await tx.execute(
            "insert into shards (org, region, reserved_through, sealed_through, settled_through,"
            " rolled_up_through) select 0, 'core', at(%(ahead)s), at(%(now)s), at(%(now)s),"
            " at(%(now)s)",
            ahead=Instant(world.now + 1_500_000),
            now=world.now,
        )
    row = await world.monitor(interval_seconds=60)
    begun = world.now + 1_500_000
    await record(world, row, world.now + 200_000, *range(begun, begun + 58 * MINUTE, MINUTE))
    await pass_until(world, START + 3 * HOUR)
    end = START + 2 * HOUR
    rows = await world.rows("select hour, good_us, bad_us, unknown_us, total from monitor_hours")
    first = next(r for r in rows if r[0] == START + HOUR)
    assert first[1:] == (end - begun, 0, 0, 59)


async def edit(world: World, row: MonitorRow, **given: Any) -> None:
    async with world.pool.transaction("edit") as tx:
        await edit_monitor(tx, world.editor, row.uid, given, world.keyring, REGIONS)


async def hours_of(world: World, row: MonitorRow) -> list[tuple[Instant, int]]:
    return await world.rows(
        "select hour, total from monitor_hours where monitor = %(m)s order by hour", m=row.id
    )


@pytest.mark.parametrize("behind", ["core", "eu", "neither"])
async def test_the_hours_of_a_monitor_that_moved_are_all_rolled_up(
    world: World, behind: str
) -> None:
    row = await world.monitor(interval_seconds=60)
    await world.monitor(region="eu", type="push")
    await record(world, row, *range(START, START + 6 * HOUR, MINUTE))
    await pass_until(world, START + 3 * HOUR + 20 * MINUTE)
    await execute(
        world,
        "update shards set rolled_up_through = at(%(at)s) where region = %(behind)s",
        at=Instant(START + HOUR),
        behind=behind,
    )
    await execute(
        world,
        "delete from monitor_hours where hour >= at(%(at)s) and %(behind)s = 'core'",
        at=Instant(START + HOUR),
        behind=behind,
    )
    await edit(world, row, region="eu")
    await pass_until(world, START + 6 * HOUR + 20 * MINUTE)
    assert await hours_of(world, row) == [(START + n * HOUR, 60) for n in range(6)]


async def test_hours_wait_until_the_region_that_was_left_is_sealed(world: World) -> None:
    row = await world.monitor(interval_seconds=60)
    other = await world.monitor(region="eu", interval_seconds=60)
    await pass_until(world, START + 50 * MINUTE)
    await edit(world, row, region="eu")
    # The sealing of the old region stops here for a while.
    (core,) = await world.rows("select settled_through from shards where region = 'core'")
    await pass_until(world, START + HOUR + 10 * MINUTE, MINUTE)
    await execute(
        world,
        "update shards set sealed_through = at(%(at)s), settled_through = at(%(at)s)"
        " where region = 'core'",
        at=core[0],
    )
    await execute(world, "update shards set rolled_up_through = at(%(at)s)", at=START)
    await execute(world, "delete from monitor_hours")
    eu = MonitorSealer(world.pool, lambda: world.now)
    await eu.roll_up(other.shard)
    assert await hours_of(world, row) == []
    assert await record(world, row, START + 49 * MINUTE) == [StoreOutcome.LIVE]
    await pass_until(world, START + HOUR + 20 * MINUTE, MINUTE)
    assert await hours_of(world, row) == [(START, 1)]


@pytest.mark.parametrize("hour", [1, 23])
async def test_a_result_stored_during_the_roll_up_is_in_the_figures(
    world: World, hour: int
) -> None:
    row = await world.monitor(interval_seconds=60)
    start = Instant(START + hour * HOUR)
    await record(world, row, start)
    await pass_until(world, start + HOUR, HOUR)
    world.now = Instant(start + HOUR + 10 * MINUTE)
    await Ticker(world.pool, lambda: world.now).pass_once()
    sealer = MonitorSealer(world.pool, lambda: world.now)
    async with world.pool.transaction("shards", read_only=True) as tx:
        (shard,) = await shards.select_shards(tx)
    await sealer.seal(shard)
    rolled, learnt = trio.Event(), trio.Event()

    async def roll_up_slowly() -> None:
        async with world.pool.transaction("roll up, slowly") as tx:
            await roll_up_hour(tx, [row.key], start)
            rolled.set()
            await learnt.wait()
            await until_blocked(world.pool)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(roll_up_slowly)
        await rolled.wait()
        assert await record(world, row, start + MINUTE) == [StoreOutcome.HISTORY]
        nursery.start_soon(Repairer(world.pool).pass_once)
        learnt.set()
    async with world.pool.transaction("move") as tx:
        assert await figures.advance_rolled_up(tx, shard.id, start, Instant(start + HOUR))
    assert (start, 2) in await hours_of(world, row)
    days = await world.rows("select day, total from monitor_days")
    assert days == ([(START, 2)] if hour == 23 else [])
    assert await world.rows("select 1 from repairs") == []


async def test_a_late_result_is_fresh_as_long_as_the_terms_of_its_time_allow(
    world: World,
) -> None:
    row = await world.monitor(interval_seconds=3600)
    await pass_until(world, START + 4 * HOUR)
    await edit(world, row, interval_seconds=60)
    await pass_until(world, START + 5 * HOUR + 10 * MINUTE)
    assert await record(world, row, START + 30 * MINUTE) == [StoreOutcome.HISTORY]
    await Repairer(world.pool).pass_once()
    rows = await world.rows("select hour, good_us from monitor_hours order by hour")
    good_us = [30 * MINUTE, HOUR, HOUR, 30 * MINUTE, 0]
    assert rows == [(START + n * HOUR, us) for n, us in enumerate(good_us)]


async def test_a_failed_repair_is_postponed_and_not_counted(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def reject(_tx: Tx, _item: DueRepair) -> None:
        raise Rejected("a bug")

    row = await world.monitor(interval_seconds=3600)
    await pass_until(world, START + 2 * HOUR)
    assert await record(world, row, START + 30 * MINUTE) == [StoreOutcome.HISTORY]
    repairer = Repairer(world.pool)
    with monkeypatch.context() as patch:
        patch.setattr(figure_repairer, "restate", reject)
        assert await repairer.pass_once() == 1
    assert repairer.repaired == 0
    assert await world.rows("select last_error from repairs") == [("a bug",)]


@pytest.mark.parametrize("finder", ["listener", "push"])
async def test_silence_that_is_found_late_is_in_the_figures(world: World, finder: str) -> None:
    """A process listened during the whole time, but no deadline was checked."""
    row = await world.monitor(type="push", interval_seconds=600, grace_seconds=0)
    await record(world, row, START + 30 * MINUTE)
    await pass_until(world, START + 2 * HOUR)
    await world.listen(START, world.now)
    if finder == "push":
        await record(world, row, world.now)
    else:
        async with world.pool.transaction("judge") as tx:
            await record_missed_pushes(tx, [row.key], [row.shard])
    await Repairer(world.pool).pass_once()
    while await Repairer(world.pool).pass_once():
        pass
    rows = await world.rows("select hour, good_us, bad_us from monitor_hours order by hour limit 1")
    assert rows == [(START, 10 * MINUTE, 20 * MINUTE)]


async def test_late_results_of_the_same_hours_are_repaired_together(world: World) -> None:
    row, other = await world.monitor(interval_seconds=60), await world.monitor()
    await pass_until(world, START + 3 * HOUR)
    late = [START + n * MINUTE for n in range(0, 100, 10)]
    assert set(await record(world, row, *late)) == {StoreOutcome.HISTORY}
    assert await record(world, other, START + MINUTE) == [StoreOutcome.HISTORY]
    repairer = Repairer(world.pool)
    # One an hour of the monitor, and the other monitor's own.
    assert await repairer.pass_once() == 3
    assert await hours_of(world, row) == [(START, 6), (START + HOUR, 4)]
    assert await hours_of(world, other) == [(START, 1), (START + HOUR, 0)]
    assert await world.rows("select 1 from repairs") == []


async def test_sums_of_a_long_list_end_with_the_rolled_up_hour(world: World) -> None:
    row = await world.monitor(interval_seconds=60)
    await record(world, row, *range(START, START + 2 * HOUR + 30 * MINUTE, MINUTE))
    await pass_until(world, START + 2 * HOUR + 40 * MINUTE)
    async with world.pool.transaction("sums", read_only=True) as tx:
        sums, until = await select_stored_sums(tx, [row.key], tx.now, 30)
        exact = await select_sums(tx, {row.key: row.type}, tx.now, 30)
    assert until == START + 2 * HOUR
    assert sums[row.key].split.range_us == 2 * HOUR
    assert exact[row.key].measured.split.range_us > 2 * HOUR
    assert exact[row.key].is_sealed


async def test_sums_leave_out_days_before_the_range(world: World) -> None:
    row = await world.monitor(interval_seconds=60)
    await record(world, row, *range(START, START + 3 * DAY, 30 * MINUTE))
    await pass_until(world, START + 3 * DAY, 6 * HOUR)
    await execute(world, "update shards set rolled_up_through = at(%(at)s)", at=START + HOUR)
    await execute(world, "delete from monitor_days")
    (today,) = await days_of(world, row, 1)
    assert today.split.range_us <= DAY
    assert len(await days_of(world, row, 2)) == 2


async def test_monitors_without_a_result_have_no_sum(world: World) -> None:
    row = await world.monitor(interval_seconds=60)
    async with world.pool.transaction("sums", read_only=True) as tx:
        exact = await select_sums(tx, {row.key: row.type}, tx.now, 30)
    assert exact[row.key].measured == NOTHING
    assert not exact[row.key].is_sealed
