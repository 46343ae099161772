"""A process that is killed at any statement of packing, merging or a repair loses no row.

The backend is terminated before the n-th statement, for every n. The kill of the whole daemon is in
`tests/journeys/test_killed_packing.py`.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from leadline.storage.core.instant import DAY, HOUR, MINUTE, Instant
from leadline.storage.engine.pools import Tx
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.results.rules.incoming_result import ResultSource
from leadline.storage.results.transactions.merge_week import merge_some
from leadline.storage.results.transactions.pack_day import PackOutcome, pack_some
from leadline.storage.results.transactions.record_results import record_results
from tests.results.packing.test_packing_storage import merge_all, pack_all, record, seal, stored
from tests.support.worlds.killed import killed_at_each_statement
from tests.support.worlds.world import START, World

Work = Callable[[Tx], Awaitable[Any]]


async def killed(
    world: World, monkeypatch: pytest.MonkeyPatch, rows: list[MonitorRow], work: Work
) -> int:
    async def state() -> Any:
        return [await stored(world, row) for row in rows]

    return await killed_at_each_statement(world, monkeypatch, work, state)


async def late_result(tx: Tx, world: World, row: MonitorRow, at: Instant) -> None:
    arrival = world.result(row, at, True, dues=(at,), source=ResultSource.BACKFILL, windowed=True)
    await record_results(tx, [arrival])


async def test_a_step_of_packing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [await world.monitor() for _ in range(2)]
    await seal(world, START)
    for row in rows:
        await record(world, row, Instant(START + HOUR), Instant(START + 2 * HOUR))
    await seal(world, Instant(START + 3 * DAY))
    async with world.pool.transaction("gap") as tx:
        assert (await pack_some(tx, [START], 9)).outcome is PackOutcome.GAP

    async def check(expected: PackOutcome) -> None:
        async def step(tx: Tx) -> None:
            assert (await pack_some(tx, [START], 9)).outcome is expected

        before = [await stored(world, row) for row in rows]
        assert await killed(world, monkeypatch, rows, step) >= 5
        assert [await stored(world, row) for row in rows] == before

    await check(PackOutcome.MONITORS)
    async with world.pool.transaction("late") as tx:
        await late_result(tx, world, rows[0], Instant(START + 3 * HOUR))
    # The monitor with the late result again.
    await check(PackOutcome.MONITORS)
    await check(PackOutcome.DAY)
    assert await world.rows("select sum(results) from packed_runs") == [(5,)]


async def test_a_merge_and_repairs(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [await world.monitor() for _ in range(2)]
    await seal(world, START)
    for day in range(7):
        for row in rows:
            await record(world, row, Instant(START + day * DAY + HOUR))
    await seal(world, Instant(START + 9 * DAY))
    assert await pack_all(world) == 7

    async def late(tx: Tx) -> None:
        await late_result(tx, world, rows[0], Instant(START + DAY + 2 * HOUR))

    assert await killed(world, monkeypatch, rows, late) >= 10

    async def merge(tx: Tx) -> None:
        assert (await merge_some(tx, 9)).rows == 2 * (7 + 7 + 1)

    before = [await stored(world, row) for row in rows]
    assert await killed(world, monkeypatch, rows, merge) >= 10
    assert [await stored(world, row) for row in rows] == before

    async def late_in_week(tx: Tx) -> None:
        await late_result(tx, world, rows[0], Instant(START + 4 * DAY + 30 * MINUTE))

    assert await killed(world, monkeypatch, rows, late_in_week) >= 10
    beats, runs = await stored(world, rows[0])
    assert (len(beats), len(runs)) == (9, 9)
    assert await stored(world, rows[1]) == before[1]
    assert await merge_all(world) == 1
