"""Decisions about outages beside writers of results: steady results and decisions let each other
through, decisions exclude each other, and changes of a state exclude both.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
import trio
from uuid_utils.compat import uuid7

from leadline.storage.alerting.tables import outages
from leadline.storage.alerting.transactions.process_outages import process_outages
from leadline.storage.core.instant import SECOND, Instant
from leadline.storage.core.key import MonitorKey
from leadline.storage.engine.pools import Tx
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.monitors.tables.monitors import touch_states
from leadline.storage.results.tables.results import lock_states
from leadline.storage.results.transactions.record_steady import copy_steady, record_steady
from leadline.storage.scheduling.tables.presences import begin_presence
from tests.support.worlds.blocked import until_blocked
from tests.support.worlds.world import START, World

Write = Callable[..., Awaitable[list[bool]]]

# The statement of an alert processor of an earlier version.
_EARLIER_LOCK = """
select from monitor_states where monitor = any(%(ids)s) order by org, monitor
for no key update skip locked
"""


async def beside(world: World, work: Callable[[Tx], Awaitable[Any]]) -> Any:
    """Returns the answer of another transaction. It may wait for no lock."""
    answers = []

    async def run() -> None:
        async with world.pool.transaction("beside") as tx:
            await tx.execute("set local lock_timeout = '1ms'")
            answers.append(await work(tx))

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
    return answers[0]


def steady(world: World, rows: list[MonitorRow], n: int) -> list[Any]:
    due = Instant(START + n * SECOND)
    made = [world.result(row, due, True, dues=(due,), windowed=True, version=1) for row in rows]
    return [msgspec.structs.replace(a, shares_row=place % 2 == 0) for place, a in enumerate(made)]


@pytest.mark.parametrize("write", [copy_steady, record_steady])
async def test_steady_results_and_decisions_let_each_other_through(
    world: World, write: Write
) -> None:
    rows = [await world.monitor() for _ in range(2)]
    keys = [row.key for row in rows]
    async with world.pool.transaction("decision") as tx:
        assert (await outages.lock_free_subjects(tx, keys))[0].keys() == set(keys)
        stored = await beside(world, lambda other: write(other, steady(world, rows, 1)))
        assert stored == [True, True]
    async with world.pool.transaction("steady") as tx:
        assert await write(tx, steady(world, rows, 2)) == [True, True]
        assert (await beside(world, lambda other: process_outages(other, keys))).busy == []


async def test_decisions_about_a_monitor_exclude_each_other(world: World) -> None:
    rows = [await world.monitor() for _ in range(3)]
    keys = [row.key for row in rows]
    order = []

    async def decide() -> None:
        async with world.pool.transaction("second") as tx:
            await outages.lock_subjects(tx, keys)
            order.append("second")

    async with trio.open_nursery() as nursery:
        async with world.pool.transaction("first") as tx:
            assert (await outages.lock_free_subjects(tx, keys[:2]))[0].keys() == set(keys[:2])
            assert (await beside(world, lambda other: process_outages(other, keys))).busy == keys[
                :2
            ]
            nursery.start_soon(decide)
            await until_blocked(world.pool)
            order.append("first")
    assert order == ["first", "second"]


@pytest.mark.parametrize("change", [touch_states, lock_states])
async def test_a_change_of_a_state_excludes_decisions(
    world: World, change: Callable[[Tx, list[MonitorKey]], Awaitable[object]]
) -> None:
    row = await world.monitor()
    async with world.pool.transaction("change") as tx:
        await change(tx, [row.key])
        assert (await beside(world, lambda o: process_outages(o, [row.key]))).busy == [row.key]
    done = []

    async def change_later() -> None:
        async with world.pool.transaction("change") as tx:
            await change(tx, [row.key])
            done.append("change")

    async with trio.open_nursery() as nursery:
        async with world.pool.transaction("decision") as tx:
            await outages.lock_free_subjects(tx, [row.key])
            nursery.start_soon(change_later)
            await until_blocked(world.pool)
            done.append("decision")
    assert done == ["decision", "change"]


async def test_decisions_of_an_earlier_version_are_excluded_while_it_is_present(
    world: World,
) -> None:
    row = await world.monitor()
    async with world.pool.transaction("begin") as tx:
        await begin_presence(
            tx, uuid7(), world.now, "host", ["all"], ["core"], "0", accepts_pushes=True
        )
        await tx.execute("update presences set knows = '{}'")

    async def earlier(tx: Tx) -> int:
        return len(await tx.rows(_EARLIER_LOCK, ids=[row.id]))

    async with world.pool.transaction("decision") as tx:
        await outages.lock_free_subjects(tx, [row.key])
        assert await beside(world, earlier) == 0
    async with world.pool.transaction("earlier") as tx:
        assert await earlier(tx) == 1
        assert (await beside(world, lambda o: process_outages(o, [row.key]))).busy == [row.key]
