"""Closed days are packed while late results arrive: no row is lost, doubled or changed."""

import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from leadline.storage.accounts.rules.access import CredentialKind, Membership, Principal, Role
from leadline.storage.core.instant import DAY, HOUR, MINUTE, SECOND, Instant, to_datetime
from leadline.storage.core.refusal import Unavailable
from leadline.storage.engine.backup import restore_backup, write_backup
from leadline.storage.engine.pools import Rejected
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.monitors.transactions.edit_monitor import edit_monitor
from leadline.storage.results.rules.incoming_result import ResultSource, StoreOutcome
from leadline.storage.results.rules.late_result import SettledWindow, settle_late
from leadline.storage.results.rules.packed_days import (
    MERGED_MOST,
    PACKED_AFTER_US,
    day_of,
    is_sealed_day,
    week_of,
)
from leadline.storage.results.tables import packing
from leadline.storage.results.transactions import merge_week
from leadline.storage.results.transactions.merge_week import merge_some
from leadline.storage.results.transactions.pack_day import PackOutcome, PackStep, pack_some
from leadline.storage.results.transactions.record_results import record_results
from leadline.storage.results.transactions.record_steady import record_steady
from leadline.storage.retirement.transactions.delete_monitor import delete_monitor
from tests.support.worlds.deletion import delete_project
from tests.support.worlds.world import REGIONS, START, World, small_world

_HEARTBEATS = """
select ts, up, latency_ms, code, msg, dns_us from heartbeats_in(%(org)s::int, %(monitor)s::int,
  '-infinity', 'infinity') order by ts
"""
_RUNS = """
select due_at, verdict::text, reason, settled_at
from runs_in(%(org)s::int, %(monitor)s::int, '-infinity', 'infinity') order by due_at
"""


async def seal(world: World, through: Instant) -> None:
    """Moves every fence and watermark, as if the sealer was up to date."""
    world.now = max(world.now, through)
    async with world.pool.transaction("seal") as tx:
        await tx.execute(
            "update shards set sealed_through = at(%(t)s), settled_through = at(%(t)s),"
            " reserved_through = at(%(t)s)",
            t=through,
        )


async def step(world: World, most: int = 100, oldest: Instant = START) -> PackStep:
    """Makes the next step, after the one that moves over days without partitions."""
    while True:
        async with world.pool.transaction("pack_day") as tx:
            found = await pack_some(tx, [oldest], most)
        if found.outcome is not PackOutcome.GAP:
            return found


async def pack_all(world: World, most: int = 100) -> int:
    """Packs all sealed days and returns their number."""
    days = 0
    while (found := await step(world, most)).outcome is not PackOutcome.NOTHING:
        days += found.outcome is PackOutcome.DAY
    return days


async def merge(world: World, most: int = 100) -> PackStep:
    """Makes the next step of merging."""
    async with world.pool.transaction("merge_week") as tx:
        return await merge_some(tx, most)


async def merge_all(world: World, most: int = 100) -> int:
    """Merges all packed weeks and returns their number."""
    weeks = 0
    while (found := await merge(world, most)).outcome is not PackOutcome.NOTHING:
        weeks += found.outcome is PackOutcome.WEEK
    return weeks


async def stored(world: World, row: MonitorRow) -> tuple[list[Any], list[Any]]:
    key = {"org": row.org, "monitor": row.id}
    return await world.rows(_HEARTBEATS, **key), await world.rows(_RUNS, **key)


async def record(
    world: World, row: MonitorRow, *ats: Instant, up: bool = True, **given: Any
) -> list[StoreOutcome]:
    """Records a result for each window due at an instant, which starts a second later."""
    arrivals = [
        world.result(row, Instant(at + SECOND), up, dues=(at,), windowed=True, **given)
        for at in ats
    ]
    async with world.pool.transaction("record") as tx:
        found, _ = await record_results(tx, arrivals)
    return [one.fate for one in found]


async def beside(work: Callable[[World], Awaitable[PackStep]], world: World) -> PackStep:
    """Runs work in another task, because a task has one connection."""
    found: list[PackStep] = []

    async def run() -> None:
        found.append(await work(world))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
    return found[0]


async def through(world: World) -> Instant:
    return Instant((await world.rows("select packed_through from packing"))[0][0])


@pytest.mark.parametrize("seed", range(4))
async def test_late_results_and_packing_in_any_order(world: World, seed: int) -> None:
    """The rows equal those of a model that knows neither packing nor merging."""
    rng = random.Random(seed)
    rows = [await world.monitor() for _ in range(3)]
    beats: dict[int, dict[int, tuple[bool, int, str | None]]] = {row.id: {} for row in rows}
    ledgers: dict[int, list[SettledWindow]] = {row.id: [] for row in rows}
    await seal(world, START)
    for turn in range(60):
        if rng.random() < 0.3:
            await seal(world, Instant(world.now + rng.randrange(2 * DAY)))
        if rng.random() < 0.6:
            await step(world, rng.choice([1, 2, 100]))
            await merge(world, rng.choice([1, 2, 100]))
        row = rng.choice(rows)
        arrivals = []
        for place in range(rng.randint(1, 4)):
            due = Instant(
                START + rng.randrange(min(world.now - START, 16 * DAY) // HOUR + 1) * HOUR
            )
            arrivals.append(
                world.result(
                    row,
                    Instant(due + 1 + turn * SECOND + place),
                    rng.random() < 0.7,
                    dues=(due,),
                    latency_ms=turn,
                    msg=rng.choice(["", "timeout"]),
                    source=ResultSource.BACKFILL,
                    windowed=rng.random() < 0.8,
                )
            )
        async with world.pool.transaction("record") as tx:
            found, _ = await record_results(tx, arrivals)
            for arrival, outcome in zip(arrivals, found, strict=True):
                late = (
                    outcome.fate is StoreOutcome.HISTORY or arrival.source is ResultSource.BACKFILL
                )
                window = SettledWindow(
                    arrival.dues[0], tx.now, "covered_late" if late else "covered", None
                )
                ledgers[row.id], written = settle_late(ledgers[row.id], [window])
                assert (outcome.fate is StoreOutcome.DUPLICATE) is (
                    arrival.windowed and not written
                )
                if outcome.fate is not StoreOutcome.DUPLICATE:
                    value = (arrival.up, turn, arrival.msg or None)
                    assert beats[row.id].setdefault(outcome.ts, value) == value
    await seal(world, Instant(world.now + 3 * DAY))
    await pack_all(world)
    await merge_all(world)
    async with world.pool.transaction("drop_old_rows") as tx:
        for table, column in (("heartbeats", "ts"), ("expected_runs", "due_at")):
            await tx.execute(
                f"delete from {table} where {column} < at(%(t)s)", t=await _through(tx)
            )
    for row in rows:
        found_beats, found_runs = await stored(world, row)
        assert {ts: (up, ms, msg) for ts, up, ms, _, msg, _ in found_beats} == beats[row.id]
        assert len(found_beats) == len(beats[row.id])
        assert found_runs == [
            (w.due_at, w.verdict, w.reason, w.settled_at) for w in ledgers[row.id]
        ]


async def _through(tx: Any) -> Instant:
    return (await packing.select_packing(tx)).packed_through


async def test_a_late_result_between_packing_and_the_end_of_the_day_is_packed(
    world: World,
) -> None:
    row = await world.monitor()
    await seal(world, START)
    assert await record(world, row, Instant(START + HOUR)) == [StoreOutcome.LIVE]
    await seal(world, Instant(START + 4 * DAY))
    assert (await step(world)).outcome is PackOutcome.MONITORS
    late = await record(world, row, Instant(START + 2 * HOUR), Instant(START + 3 * HOUR))
    assert late == [StoreOutcome.HISTORY] * 2
    before = await stored(world, row)
    assert (await step(world)).outcome is PackOutcome.MONITORS
    assert (await step(world)).outcome is PackOutcome.DAY
    assert await through(world) == START + DAY
    assert await stored(world, row) == before
    assert await world.rows("select 1 from late_writes") == []
    assert await world.rows("select sum(results) from packed_runs") == [(3,)]


async def test_a_day_does_not_end_while_a_late_result_is_stored(world: World) -> None:
    row = await world.monitor()
    await seal(world, Instant(START + 4 * DAY))
    assert (await step(world)).outcome is PackOutcome.MONITORS
    arrival = world.result(row, Instant(START + HOUR), True, source=ResultSource.BACKFILL)
    async with world.pool.transaction("record") as tx:
        await record_results(tx, [arrival])
        # A packer of another process.
        assert (await beside(step, world)).outcome is PackOutcome.LATE_WRITER
    before = await stored(world, row)
    assert (await step(world)).outcome is PackOutcome.MONITORS
    assert (await step(world)).outcome is PackOutcome.DAY
    assert await stored(world, row) == before
    assert len(before[0]) == 1


async def test_late_results_of_a_packed_day_change_its_pieces(world: World) -> None:
    row = await world.monitor()
    await seal(world, START)
    await record(world, row, Instant(START + HOUR))
    await seal(world, Instant(START + 4 * DAY))
    assert await pack_all(world) == 2
    assert await record(world, row, Instant(START + HOUR)) == [StoreOutcome.DUPLICATE]
    assert await record(world, row, Instant(START + 2 * HOUR)) == [StoreOutcome.HISTORY]
    # No row was stored in the tables.
    assert await world.rows(
        "select count(*) from heartbeats where ts >= at(%(t)s)", t=START + 2 * HOUR
    ) == [(0,)]
    beats, runs = await stored(world, row)
    assert [beat[0] for beat in beats] == [START + HOUR + SECOND, START + 2 * HOUR + SECOND]
    assert [run[:2] for run in runs] == [
        (START + HOUR, "covered"),
        (START + 2 * HOUR, "covered_late"),
    ]


async def test_the_pieces_of_a_week_are_merged_and_changed_as_one(world: World) -> None:
    row, quick = await world.monitor(), await world.monitor()
    await seal(world, START)
    dues = [Instant(START + day * DAY + HOUR) for day in range(9)]
    await record(world, row, *dues)
    busy = [Instant(START + n * MINUTE) for n in range(MERGED_MOST + 1)]
    await record(world, quick, *busy, *dues)
    await seal(world, Instant(START + 9 * DAY))
    assert await pack_all(world) == 7
    before = [await stored(world, each) for each in (row, quick)]
    pieces = "select count(*) from packed_runs where monitor = %(m)s"
    assert await world.rows(pieces, m=row.id) == [(7,)]
    assert await merge_all(world, 1) == 1
    # The next week is not packed.
    assert (await merge(world)).outcome is PackOutcome.NOTHING
    assert await world.rows(pieces, m=row.id) == [(1,)]
    assert (await world.rows(pieces, m=quick.id))[0][0] >= 7
    assert [await stored(world, each) for each in (row, quick)] == before
    # A late result of a day within the piece.
    late = Instant(START + 3 * DAY + 2 * HOUR)
    assert await record(world, row, late, dues[2]) == [StoreOutcome.HISTORY, StoreOutcome.DUPLICATE]
    assert await world.rows(pieces, m=row.id) == [(1,)]
    beats, runs = await stored(world, row)
    assert [run[0] for run in runs] == sorted([*dues, late])
    assert len(beats) == len(runs)


async def test_a_step_of_merging_takes_few_locks(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merge_week, "LOCKED_MOST", 2)
    rows = [await world.monitor() for _ in range(5)]
    await seal(world, START)
    for row in [*rows[:2], *rows[3:]]:
        await record(world, row, Instant(START + HOUR), Instant(START + DAY + HOUR))
    await seal(world, Instant(START + 9 * DAY))
    await pack_all(world)
    before = [await stored(world, row) for row in rows]
    # The third monitor has no piece, and is passed with the first two.
    assert [(await merge(world)).monitors for _ in range(2)] == [3, 2]
    assert (await merge(world)).outcome is PackOutcome.WEEK
    assert await world.rows("select count(*) from packed_runs") == [(4,)]
    assert [await stored(world, row) for row in rows] == before


async def test_merging_does_not_wait_for_a_late_writer(world: World) -> None:
    row = await world.monitor()
    await seal(world, START)
    await record(world, row, Instant(START + HOUR), Instant(START + DAY + HOUR))
    await seal(world, Instant(START + 9 * DAY))
    await pack_all(world)
    arrival = world.result(row, Instant(START + 2 * HOUR), True, source=ResultSource.BACKFILL)
    async with world.pool.transaction("record") as tx:
        await record_results(tx, [arrival])
        assert (await beside(merge, world)).outcome is PackOutcome.LATE_WRITER
    before = await stored(world, row)
    assert (await merge(world)).rows == 5
    assert await stored(world, row) == before
    assert len(before[0]) == 3


async def test_an_open_window_keeps_its_day_unpacked(world: World) -> None:
    """So that the sealer never settles a window of a packed day."""
    row = await world.monitor()
    await seal(world, Instant(START + 9 * DAY))
    async with world.pool.transaction("open") as tx:
        await tx.execute(
            "insert into run_batches (shard, kind, orgs, monitors, due_ats, seal_ats,"
            " claim_untils, published, first_due, claim_until, first_seal, last_seal, claimed)"
            " values (%(shard)s, 'push', array[%(org)s::int], array[%(monitor)s::int],"
            " array[at(%(due)s)], array[at(%(now)s)], array[at(%(due)s)], true, at(%(due)s),"
            " at(%(due)s), at(%(now)s), at(%(now)s), false)",
            shard=row.shard,
            org=row.org,
            monitor=row.id,
            due=START + 2 * DAY + HOUR,
            now=world.now,
        )
    assert await pack_all(world) == 2
    async with world.pool.transaction("settle") as tx:
        await tx.execute("delete from run_batches")
    assert await pack_all(world) == 5


async def test_a_steady_result_of_an_old_window_takes_the_locked_path(world: World) -> None:
    """A push can cover windows of earlier days, which can be packed."""
    row = await world.monitor(type="push", interval_seconds=86_400, grace_seconds=86_400)
    await seal(world, Instant(START + 4 * DAY))
    old = Instant(world.now - DAY - MINUTE)
    arrival = world.result(row, world.now, True, dues=(old,), version=1)
    async with world.pool.transaction("record") as tx:
        assert await record_steady(tx, [arrival]) == [False]
        recent = world.result(row, world.now, True, dues=(Instant(old + HOUR),), version=1)
        assert await record_steady(tx, [recent]) == [True]


async def killed_step(world: World) -> None:
    async with world.pool.transaction("pack_day") as tx:
        assert (await pack_some(tx, [START], 1)).monitors == 1
        await tx.execute("select pg_terminate_backend(pg_backend_pid())")


async def test_a_killed_step_leaves_nothing_and_is_repeated(world: World) -> None:
    rows = [await world.monitor() for _ in range(3)]
    await seal(world, START)
    for row in rows:
        await record(world, row, Instant(START + HOUR))
    await seal(world, Instant(START + 3 * DAY))
    before = [await stored(world, row) for row in rows]
    await step(world, 1)
    with pytest.raises((Unavailable, Rejected)):
        await killed_step(world)
    assert await world.rows("select count(*) from packed_runs") == [(1,)]
    assert await pack_all(world, 1) == 1
    assert [await stored(world, row) for row in rows] == before
    assert await world.rows("select count(*) from packed_runs") == [(3,)]


async def test_a_day_that_was_dropped_leaves_no_cursor_for_the_next_one(world: World) -> None:
    rows = [await world.monitor() for _ in range(2)]
    await seal(world, START)
    for row in rows:
        await record(world, row, Instant(START + HOUR), Instant(START + DAY + HOUR))
    await seal(world, Instant(START + 4 * DAY))
    assert (await step(world, 1)).outcome is PackOutcome.MONITORS
    next_day = Instant(START + DAY)
    async with world.pool.transaction("drop the first day") as tx:
        await tx.execute("delete from heartbeats where ts < at(%(t)s)", t=next_day)
        await tx.execute("delete from expected_runs where due_at < at(%(t)s)", t=next_day)
    while (await step(world, 1, next_day)).outcome is not PackOutcome.DAY:
        pass
    assert await through(world) == START + 2 * DAY
    for row in rows:
        beats, runs = await stored(world, row)
        assert [beat[0] for beat in beats if beat[0] >= next_day] == [next_day + HOUR + SECOND]
        assert [run[0] for run in runs if run[0] >= next_day] == [next_day + HOUR]
    assert await world.rows("select kept_from from packing") == [(next_day,)]


async def test_two_packers_do_not_meet(world: World) -> None:
    await world.monitor()
    await seal(world, Instant(START + 3 * DAY))
    async with world.pool.transaction("pack_day") as tx:
        assert (await pack_some(tx, [START], 1)).outcome is PackOutcome.GAP
        assert (await beside(step, world)).outcome is PackOutcome.BUSY


async def test_rows_of_a_monitor_without_an_archive_are_not_packed(world: World) -> None:
    row, other = await world.monitor(), await world.monitor()
    await seal(world, START)
    for each in (row, other):
        await record(world, each, Instant(START + HOUR))
    await seal(world, Instant(START + 3 * DAY))
    await step(world, 1)
    await record(world, row, Instant(START + 2 * HOUR))
    async with world.pool.transaction("delete") as tx:
        await delete_monitor(tx, world.editor, row.uid)
    assert await pack_all(world, 1) == 1
    assert await world.rows("select monitor, results from packed_runs") == [(other.id, 1)]
    assert await world.rows("select 1 from late_writes") == []


async def test_late_rows_of_an_archived_monitor_are_packed(world: World) -> None:
    row, other = await world.monitor(), await world.monitor()
    config = {"children": [str(row.uid), str(other.uid)]}
    composite = await world.monitor(type="composite", target="", config=config)
    await seal(world, START)
    for each in (row, other):
        await record(world, each, Instant(START + HOUR))
    await seal(world, Instant(START + 3 * DAY))
    await step(world, 1)
    await record(world, row, Instant(START + 2 * HOUR))
    async with world.pool.transaction("edit") as tx:
        given = {"config": {"children": [str(other.uid)]}}
        await edit_monitor(tx, world.editor, composite.uid, given, world.keyring, REGIONS)
    before = await stored(world, row)
    async with world.pool.transaction("delete") as tx:
        await delete_monitor(tx, world.editor, row.uid)
    assert await pack_all(world, 1) == 1
    assert await stored(world, row) == before
    assert await world.rows("select monitor, results from packed_runs order by 1") == [
        (row.id, 2),
        (other.id, 1),
    ]
    async with world.pool.transaction("delete the project") as tx:
        member = Membership(world.org, None, Role.ORG_ADMIN)
        admin = Principal(CredentialKind.SESSION, (member,), label="admin")
        await delete_project(tx, admin, world.project_uid)
    for table in ("packed_heartbeats", "packed_runs", "deleted_monitors"):
        assert await world.rows(f"select 1 from {table}") == []


async def test_a_backup_has_the_pieces(
    world: World, dsn: str, empty_dsn: str, tmp_path: Path
) -> None:
    row = await world.monitor()
    await seal(world, START)
    await record(world, row, Instant(START + HOUR), Instant(START + 2 * HOUR))
    await seal(world, Instant(START + 4 * DAY))
    assert await pack_all(world) == 2
    async with world.pool.transaction("drop") as tx:
        await tx.execute("truncate heartbeats, expected_runs")
    before = await stored(world, row)
    assert [len(rows) for rows in before] == [2, 2]
    manifest = await write_backup(
        dsn,
        tmp_path / "b",
        product_version="0",
        key=None,
        key_state="excluded",
        progress=lambda _: None,
    )
    await restore_backup(empty_dsn, tmp_path / "b", manifest, progress=lambda _: None)
    async with small_world(empty_dsn) as restored:
        assert await stored(restored, row) == before
        assert await through(restored) == START + 2 * DAY
        assert await record(restored, row, Instant(START + 3 * HOUR)) == [StoreOutcome.HISTORY]


def test_weeks_begin_on_monday() -> None:
    for start in (START, Instant(START + 21 * DAY), Instant(4 * DAY), Instant(-3 * DAY)):
        for at in (start, Instant(start + 7 * DAY - 1)):
            week = week_of(at)
            assert (week.from_, week.until) == (start, start + 7 * DAY)
            assert to_datetime(week.from_).isoweekday() == 1
            assert week_of(day_of(at).from_) == week


def test_a_day_is_packed_when_it_is_old_and_has_no_open_window() -> None:
    day = day_of(Instant(START + HOUR))
    assert (day.from_, day.until) == (START, START + DAY)
    settled = Instant(day.until + PACKED_AFTER_US)
    assert is_sealed_day(day, settled, None)
    assert is_sealed_day(day, settled, day.until)
    assert not is_sealed_day(day, Instant(settled - 1), None)
    assert not is_sealed_day(day, settled, Instant(day.until - 1))
