"""The statement of steady results: what it stores, and when it fails as a whole."""

from typing import Any

import pytest

from leadline.storage.core.instant import MINUTE, SECOND, Instant
from leadline.storage.engine.pools import Rejected
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.results.rules.incoming_result import IncomingResult
from leadline.storage.results.transactions.record_steady import record_steady
from tests.support.worlds.world import START, World


def run(world: World, row: MonitorRow, due: int, after: int = SECOND) -> IncomingResult:
    """Returns the result of a run that began `after` its due instant, in µs."""
    at = Instant(due + after)
    return world.result(row, at, True, dues=(Instant(due),), windowed=True, version=1)


async def record(world: World, *arrivals: IncomingResult) -> list[bool]:
    async with world.pool.statement("record_steady") as tx:
        return await record_steady(tx, arrivals)


async def stored(world: World, row: MonitorRow) -> tuple[list[Any], list[Any]]:
    beats, runs = await world.beats(row), await world.ledger(row)
    return [ts for ts, _, _ in beats], [due for due, _, _ in runs]


async def test_a_taken_window_or_instant_fails_the_whole_statement(world: World) -> None:
    row, other = await world.monitor(), await world.monitor()
    world.now = START
    assert await record(world, run(world, row, START)) == [True]
    before = await stored(world, row)
    taken = [run(world, row, START, 2 * SECOND), run(world, row, START + MINUTE, -59 * SECOND)]
    for each in taken:
        with pytest.raises(Rejected):
            await record(world, run(world, other, START), each)
    assert await stored(world, row) == before
    assert await stored(world, other) == ([], [])


async def test_the_second_result_of_a_window_is_left_to_the_locked_path(world: World) -> None:
    row = await world.monitor()
    world.now = START
    pair = [run(world, row, START), run(world, row, START, 2 * SECOND)]
    assert await record(world, *pair) == [True, False]
    assert await stored(world, row) == ([START + SECOND], [START])


async def test_a_push_is_stored_although_its_window_is_covered(world: World) -> None:
    row = await world.monitor(type="push", interval_seconds=60, grace_seconds=10)
    world.now = START
    for n in range(2):
        push = world.result(row, Instant(START + n), True, dues=(START,), version=1)
        assert await record(world, push) == [True]
    assert await stored(world, row) == ([START, START + 1], [START])
