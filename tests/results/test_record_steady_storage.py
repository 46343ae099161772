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
async def test_a_taken_instant_fails_the_whole_batch(world: World, copied: bool) -> None:
    row, other = await world.monitor(), await world.monitor()
    world.now = START
    assert await record(world, run(world, row, START), copied=copied) == [True]
    before = await stored(world, row)
    taken = run(world, row, START + MINUTE, -59 * SECOND)
    with pytest.raises(Rejected):
        await record(world, run(world, other, START), taken, copied=copied)
    assert await stored(world, row) == before
    assert await stored(world, other) == ([], [])


@pytest.mark.parametrize("copied", [False, True])
@pytest.mark.parametrize("shared", [False, True])
async def test_a_taken_window_leaves_its_result_to_the_locked_path(
    world: World, copied: bool, shared: bool
) -> None:
    row, other = await world.monitor(), await world.monitor()
    world.now = START
    first = msgspec.structs.replace(run(world, row, START), shares_row=shared)
    assert await record(world, first, copied=copied) == [True]
    pair = [run(world, other, START), run(world, row, START, 2 * SECOND)]
    for again in (pair, [msgspec.structs.replace(each, shares_row=True) for each in pair]):
        kept = await record(world, *again, copied=copied)
        assert kept == [again is pair, False]
    assert await stored(world, row) == ([START + SECOND], [START])
    assert await stored(world, other) == ([START + SECOND], [START])


@pytest.mark.parametrize("copied", [False, True])
async def test_the_second_result_of_a_window_is_left_to_the_locked_path(
    world: World, copied: bool
) -> None:
    row = await world.monitor()
    world.now = START
    pair = [run(world, row, START), run(world, row, START, 2 * SECOND)]
    assert await record(world, *pair, copied=copied) == [True, False]
    assert await stored(world, row) == ([START + SECOND], [START])


@pytest.mark.parametrize("copied", [False, True])
async def test_a_late_failure_is_left_to_the_locked_path(world: World, copied: bool) -> None:
    """It extends a run of failures, which readers see by the version. A late success does not."""
    row, other = await world.monitor(), await world.monitor()
    world.now = START
    windows = {
        due: msgspec.structs.replace(run(world, row, START + due), up=False)
        for due in (0, MINUTE, 2 * MINUTE)
    }
    assert await record(world, windows[MINUTE], copied=copied) == [True]
    late_success = run(world, row, START - MINUTE)
    batch = [windows[0], late_success, windows[2 * MINUTE], run(world, other, START)]
    assert await record(world, *batch, copied=copied) == [False, True, True, True]


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
  join ledger r on r.org = h.org and r.monitor = h.monitor
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
    rows = [await world.monitor() for _ in range(4)]
    async with world.pool.transaction("test") as tx:
        for each in rows:
            await tx.execute(_CONDITION, org=each.org, id=each.id)
    draw = random.Random(46)
    found = [fields(draw) for _ in range(150)]
    for n, each in enumerate(rows):
        copied, shared = n % 2 == 1, n >= 2
        arrivals = [
            msgspec.structs.replace(run(world, each, START + n * MINUTE, n), **given)
            for n, given in enumerate(found)
        ]
        if shared:
            arrivals = [
                msgspec.structs.replace(a, shares_row=a.can_share_row(world.now)) for a in arrivals
            ]
        assert await record(world, *arrivals, copied=copied) == [True] * len(found)
    async with world.pool.transaction("test", read_only=True) as tx:
        stored = [await tx.rows(_ROWS, monitor=each.id) for each in rows]
        shared_rows = await tx.value("select count(*) from heartbeats where after_due_us >= 0")
    assert all(one == stored[0] for one in stored)
    assert len(stored[0]) == len(found)
    assert 0 < shared_rows < 2 * len(found)


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


# The lock, the windows, the conditions, and COPY once or twice.
@pytest.mark.parametrize(("shared", "statements"), [(True, 4), (False, 5)])
async def test_a_process_that_is_killed_while_it_copies_stores_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch, shared: bool, statements: int
) -> None:
    world.now = START
    rows = [await world.monitor() for _ in range(2)]
    arrivals = [msgspec.structs.replace(run(world, row, START), shares_row=shared) for row in rows]
    arrivals[0] = msgspec.structs.replace(arrivals[0], condition="body", measured="x")

    async def copy(tx: Tx) -> None:
        assert await copy_steady(tx, arrivals) == [True, True]

    async def state() -> Any:
        return [await stored(world, row) for row in rows]

    assert await killed_at_each_statement(world, monkeypatch, copy, state) == statements
    assert await state() == [([START + SECOND], [START])] * 2
