"""Steady results, by a statement or by COPY: what is stored, and when all of it fails."""

import random
from typing import Any

import msgspec
import pytest
import trio

from leadline.storage.core.instant import DAY, MINUTE, SECOND, Instant
from leadline.storage.engine.pools import Rejected, Tx
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.results.rules.incoming_result import IncomingResult
from leadline.storage.results.tables import results
from leadline.storage.results.transactions.record_steady import copy_steady, record_steady
from tests.support.worlds.blocked import until_blocked
from tests.support.worlds.killed import killed_at_each_statement
from tests.support.worlds.world import START, World


def run(world: World, row: MonitorRow, due: int, after: int = SECOND) -> IncomingResult:
    """Returns the result of a run that began `after` its due instant, in µs."""
    at = Instant(due + after)
    return world.result(row, at, True, dues=(Instant(due),), windowed=True, version=1)


async def record(world: World, *arrivals: IncomingResult, copied: bool = False) -> list[bool]:
    if copied:
        async with world.pool.transaction("record_steady") as tx:
            return await copy_steady(tx, arrivals)
    async with world.pool.statement("record_steady") as tx:
        return await record_steady(tx, arrivals)


async def stored(world: World, row: MonitorRow) -> tuple[list[Any], list[Any]]:
    beats, runs = await world.beats(row), await world.ledger(row)
    return [ts for ts, _, _ in beats], [due for due, _, _ in runs]


@pytest.mark.parametrize("copied", [False, True])
async def test_a_taken_window_or_instant_fails_the_whole_batch(world: World, copied: bool) -> None:
    row, other = await world.monitor(), await world.monitor()
    world.now = START
    assert await record(world, run(world, row, START), copied=copied) == [True]
    before = await stored(world, row)
    taken = [run(world, row, START, 2 * SECOND), run(world, row, START + MINUTE, -59 * SECOND)]
    for each in taken:
        with pytest.raises(Rejected):
            await record(world, run(world, other, START), each, copied=copied)
    assert await stored(world, row) == before
    assert await stored(world, other) == ([], [])


@pytest.mark.parametrize("copied", [False, True])
async def test_the_second_result_of_a_window_is_left_to_the_locked_path(
    world: World, copied: bool
) -> None:
    row = await world.monitor()
    world.now = START
    pair = [run(world, row, START), run(world, row, START, 2 * SECOND)]
    assert await record(world, *pair, copied=copied) == [True, False]
    assert await stored(world, row) == ([START + SECOND], [START])


async def test_a_push_is_stored_although_its_window_is_covered(world: World) -> None:
    row = await world.monitor(type="push", interval_seconds=60, grace_seconds=10)
    world.now = START
    for n in range(2):
        push = world.result(row, Instant(START + n), True, dues=(START,), version=1)
        assert await record(world, push) == [True]
    assert await stored(world, row) == ([START, START + 1], [START])


_ROWS = """
select h.ts, h.latency_ms, h.up, h.code, h.dns_us, h.connect_us, h.tls_us, h.first_byte_us, h.msg,
  c.text, h.measured, r.due_at, r.settled_at, r.verdict::text, r.reason
from heartbeats h
  join expected_runs r on r.org = h.org and r.monitor = h.monitor
    and r.due_at = date_trunc('minute', h.ts)
  left join monitor_conditions c on c.org = h.org and c.id = h.failed_condition
where h.monitor = %(monitor)s order by h.ts
"""
_CONDITION = "insert into monitor_conditions (org, monitor, text) values (%(org)s, %(id)s, 'body')"
# The second condition is not in the table, so no row can refer to it.
CONDITIONS = (None, "body", "deleted")
TEXTS = ("", "timeout", "\\N\t\n\\.", "Zeitüberschreitung 🔥", "x" * 300)


def fields(draw: random.Random) -> dict[str, Any]:
    def number() -> int | None:
        return draw.choice([None, 0, draw.randrange(2**31)])

    return {
        "up": draw.random() < 0.5,
        "latency_ms": draw.randrange(2**31),
        "msg": draw.choice(TEXTS),
        **{name: number() for name in ("code", "dns_us", "connect_us", "tls_us", "first_byte_us")},
        "late": draw.random() < 0.5,
        "condition": draw.choice(CONDITIONS),
        "measured": draw.choice([None, *TEXTS]),
    }


async def test_copied_results_equal_those_of_the_statement(world: World) -> None:
    world.now = START
    row, other = await world.monitor(), await world.monitor()
    async with world.pool.transaction("test") as tx:
        for each in (row, other):
            await tx.execute(_CONDITION, org=each.org, id=each.id)
    draw = random.Random(46)
    found = [fields(draw) for _ in range(150)]
    for each, copied in ((row, False), (other, True)):
        arrivals = [
            msgspec.structs.replace(run(world, each, START + n * MINUTE, n), **given)
            for n, given in enumerate(found)
        ]
        assert await record(world, *arrivals, copied=copied) == [True] * len(found)
    async with world.pool.transaction("test", read_only=True) as tx:
        stored = [await tx.rows(_ROWS, monitor=each.id) for each in (row, other)]
    assert stored[0] == stored[1]
    assert len(stored[0]) == len(found)


async def test_copying_leaves_results_of_changed_states_and_before_the_fence(world: World) -> None:
    world.now = START
    rows = [await world.monitor() for _ in range(3)]
    arrivals = [run(world, row, START) for row in rows]
    arrivals[0] = msgspec.structs.replace(arrivals[0], version=2)
    arrivals[1] = run(world, rows[1], START - 3 * DAY)
    assert await record(world, *arrivals, copied=True) == [False, False, True]
    assert await stored(world, rows[2]) == ([START + SECOND], [START])
    assert await stored(world, rows[0]) == await stored(world, rows[1]) == ([], [])


async def test_copying_waits_for_a_writer_of_the_state_and_finds_its_version(world: World) -> None:
    world.now = START
    row, other = await world.monitor(), await world.monitor()
    found: list[bool] = []

    async def copy() -> None:
        found.extend(
            await record(world, run(world, row, START), run(world, other, START), copied=True)
        )

    async with trio.open_nursery() as nursery:
        async with world.pool.transaction("change") as tx:
            await results.lock_states(tx, [row.key])
            await tx.execute(
                "update monitor_states set version = version + 1 where monitor = %(m)s", m=row.id
            )
            nursery.start_soon(copy)
            await until_blocked(world.pool)
    assert found == [False, True]
    assert await stored(world, row) == ([], [])


async def test_a_process_that_is_killed_while_it_copies_stores_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.now = START
    rows = [await world.monitor() for _ in range(2)]
    arrivals = [run(world, row, START) for row in rows]
    arrivals[0] = msgspec.structs.replace(arrivals[0], condition="body", measured="x")

    async def copy(tx: Tx) -> None:
        assert await copy_steady(tx, arrivals) == [True, True]

    async def state() -> Any:
        return [await stored(world, row) for row in rows]

    # The lock, the conditions, and two times COPY.
    assert await killed_at_each_statement(world, monkeypatch, copy, state) == 4
    assert await state() == [([START + SECOND], [START])] * 2
