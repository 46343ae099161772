"""The packer packs closed days and drops their partitions. The janitor deletes old pieces."""

import logging
from typing import Any

import pytest
from uuid_utils.compat import uuid7

from leadline.daemon.loops.janitor import Janitor
from leadline.daemon.loops.result_packer import (
    BUSY_SECONDS,
    DROPPED_AFTER_US,
    FAILED_SECONDS,
    IDLE_SECONDS,
    MONITORS_AT_FIRST,
    TABLES,
    ResultPacker,
)
from leadline.storage.core.instant import DAY, HOUR, MINUTE, Instant
from leadline.storage.engine.partitions import partitions
from leadline.storage.results.queries.results import select_packed_from
from leadline.storage.results.rules.incoming_result import StoreOutcome
from leadline.storage.results.transactions.pack_day import PackOutcome
from leadline.storage.retirement.transactions.delete_monitor import delete_monitor
from leadline.storage.scheduling.tables import presences
from tests.results.packing.test_packing_storage import record, seal, stored, through
from tests.support.worlds.world import START, World

VERSION = "1.0"


class Installation:
    """Days of an installation with daily partitions, whose sealer is up to date."""

    def __init__(self, world: World, history_days: int = 365) -> None:
        self.world = world
        self.busy = False
        self.packer = ResultPacker(
            world.pool, lambda: world.now, VERSION, is_busy=lambda: self.busy
        )
        self.janitor = Janitor(
            world.pool,
            lambda: world.now,
            heartbeat_days=10,
            ledger_days=4,
            gate_days=90,
            history_days=history_days,
        )

    async def begin(self) -> None:
        async with self.world.pool.transaction("daily") as tx:
            for table in TABLES:
                await tx.execute(f"drop table {table}_all")
        await seal(self.world, START)
        await self.janitor.make_room()

    async def live(self, days: int, *rows: Any) -> None:
        """Stores a result of each monitor at noon of each day."""
        for _ in range(days):
            for row in rows:
                await record(self.world, row, Instant(self.world.now + 12 * HOUR))
            await seal(self.world, Instant(self.world.now + DAY))
            async with self.world.pool.transaction("roll up") as tx:
                await tx.execute("update shards set rolled_up_through = settled_through")
            await self.janitor.pass_once()

    async def pack(self) -> None:
        while await self.packer.pass_once() is not PackOutcome.NOTHING:
            pass

    async def days_of(self, table: str) -> list[int]:
        """Returns the days of the partitions, counted from START."""
        found = await partitions(self.world.pool, table)
        return [(partition.from_ - START) // DAY for partition in found]


async def test_closed_days_are_packed_and_their_partitions_dropped_later(world: World) -> None:
    home = Installation(world)
    await home.begin()
    rows = [await world.monitor() for _ in range(MONITORS_AT_FIRST + 1)]
    await home.live(6, *rows)
    before = [await stored(world, row) for row in rows]
    await home.pack()
    assert await through(world) == START + 4 * DAY
    assert home.packer.packed_rows == 2 * 4 * len(rows)
    assert home.packer.days_left == 0
    assert home.packer.rest_seconds() == IDLE_SECONDS
    assert [await stored(world, row) for row in rows] == before
    # A reader with an older snapshot still needs the partitions.
    assert (await home.days_of("heartbeats"))[0] < 0
    world.now = Instant(world.now + DROPPED_AFTER_US)
    await home.pack()
    for table in TABLES:
        assert (await home.days_of(table))[0] == 4
    assert [await stored(world, row) for row in rows] == before
    # Neither the janitor nor a later pass makes the partitions again.
    await home.janitor.pass_once()
    for table in TABLES:
        assert (await home.days_of(table))[0] == 4


async def test_old_pieces_are_deleted_and_the_rest_is_kept(world: World) -> None:
    home = Installation(world, history_days=12)
    await home.begin()
    row = await world.monitor()
    for _ in range(16):
        await home.live(1, row)
        await home.pack()
    assert await through(world) == START + 14 * DAY
    beats, runs = await stored(world, row)
    # The first week is one piece, which is deleted when its last day is too old.
    assert [(due - START) // DAY for due, *_ in runs] == list(range(16))
    assert len(beats) == len(runs)
    async with world.pool.transaction("read", read_only=True) as tx:
        assert await select_packed_from(tx) == START + 4 * DAY
    await home.live(3, row)
    assert [(due - START) // DAY for due, *_ in (await stored(world, row))[1]] == list(range(7, 19))


async def test_the_pieces_of_weeks_are_merged_once(world: World) -> None:
    home = Installation(world)
    await home.begin()
    rows = [await world.monitor() for _ in range(2)]
    await home.live(17, *rows)
    await home.pack()
    # Two weeks, and a day of the third one.
    assert (
        await world.rows("select count(*), sum(results) from packed_runs group by monitor")
        == [(3, 15)] * 2
    )
    assert await world.rows("select merged_through from packing") == [(START + 14 * DAY,)]
    assert [len((await stored(world, row))[0]) for row in rows] == [17, 17]


async def test_rows_wait_for_the_packer_beyond_the_retention_of_rows(world: World) -> None:
    """A packer that did not run for long loses no day."""
    home = Installation(world)
    await home.begin()
    row = await world.monitor()
    await home.live(13, row)
    assert (await home.days_of("heartbeats"))[0] < 0
    await home.pack()
    assert await world.rows("select sum(results) from packed_heartbeats") == [(11,)]


async def test_without_history_rows_and_pieces_are_kept_as_long_as_heartbeats(
    world: World,
) -> None:
    home = Installation(world)
    await home.begin()
    row = await world.monitor()
    await home.live(6, row)
    await home.pack()
    home.janitor = Installation(world, history_days=0).janitor
    await home.live(10, row)
    assert [(due - START) // DAY for due, *_ in (await stored(world, row))[1]] == list(range(6, 16))


async def test_packing_waits_for_the_recorder_and_for_other_versions(world: World) -> None:
    home = Installation(world)
    await home.begin()
    row = await world.monitor()
    await home.live(3, row)
    home.busy = True
    assert await home.packer.pass_once() is PackOutcome.BUSY
    assert home.packer.rest_seconds() == BUSY_SECONDS
    home.busy = False
    async with world.pool.transaction("old process") as tx:
        await presences.begin_presence(
            tx, uuid7(), world.now, "here", ["api"], [], "0.9", accepts_pushes=True
        )
    assert await home.packer.pass_once() is PackOutcome.BUSY
    assert await world.rows("select count(*) from packed_runs") == [(0,)]
    world.now = Instant(world.now + 11 * MINUTE)
    assert await home.packer.pass_once() is PackOutcome.GAP
    assert await home.packer.pass_once() is PackOutcome.MONITORS


async def test_a_monitor_that_cannot_be_packed_delays_no_other(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    home = Installation(world)
    await home.begin()
    rows = [await world.monitor() for _ in range(5)]
    for _ in range(9):
        for row in rows:
            await record(world, row, Instant(world.now + HOUR))
        await home.live(1, *rows)
    before = [await stored(world, row) for row in rows]
    bad = rows[2]
    async with world.pool.transaction("spoil") as tx:
        await tx.execute(
            f"alter table packed_heartbeats add constraint spoiled"
            f" check (results < 2 or monitor <> {bad.id})"
        )
    with caplog.at_level(logging.ERROR):
        await home.pack()
    assert await through(world) == START + 7 * DAY
    assert [await stored(world, row) for row in rows] == before
    pieces = await world.rows(
        "select monitor, count(*) from packed_heartbeats group by monitor order by monitor"
    )
    # Those of the others are merged.
    assert pieces == [(row.id, 14 if row is bad else 1) for row in rows]
    failed = await world.rows("select monitor, day from packing_failures order by day")
    assert failed == [(bad.id, START + day * DAY) for day in range(7)]
    assert caplog.text.count("results of a monitor not packed as usual") == 8
    await home.packer.pass_once()
    assert home.packer.failures == 7
    # A late result changes its pieces as well.
    assert await record(world, bad, Instant(START + 3 * HOUR)) == [StoreOutcome.HISTORY]
    assert len((await stored(world, bad))[0]) == 19
    async with world.pool.transaction("delete") as tx:
        await delete_monitor(tx, world.editor, bad.uid)
    assert await world.rows("select 1 from packing_failures") == []


async def test_a_day_that_cannot_be_packed_stays_in_the_tables(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    home = Installation(world)
    await home.begin()
    row = await world.monitor()
    await home.live(3, row)
    before = await stored(world, row)
    async with world.pool.transaction("spoil") as tx:
        await tx.execute("alter table packed_runs add constraint spoiled check (results < 0)")
    with caplog.at_level(logging.ERROR):
        await home.pack()
    assert "results not packed" in caplog.text
    assert home.packer.rest_seconds() == FAILED_SECONDS
    assert await through(world) == START
    assert await stored(world, row) == before


async def test_a_shard_that_delays_packing_is_named_once(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    home = Installation(world)
    rows = [await world.monitor(region=region) for region in ("core", "eu")]
    await home.begin()
    # The oldest partition is of the day before.
    await home.live(2, *rows)
    for hours, named in ((1, []), (6, ["eu"]), (1, []), (24, [])):
        world.now = Instant(world.now + hours * HOUR)
        async with world.pool.transaction("settle") as tx:
            await tx.execute("update shards set settled_through = at(%(now)s)", now=world.now)
            await tx.execute(
                "update shards set settled_through = at(%(start)s) where region = 'eu'", start=START
            )
        caplog.clear()
        assert await home.packer.pass_once() is PackOutcome.NOTHING
        said = [r for r in caplog.records if r.message.startswith("results not packed")]
        assert [vars(record)["region"] for record in said] == named
    assert home.packer.days_left
