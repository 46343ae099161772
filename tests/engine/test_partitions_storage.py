"""Partitions: created ahead and dropped during writes; every interruption is completed later."""

from collections.abc import AsyncIterator
from functools import partial

import psycopg
import pytest
import trio

from leadline.storage.core.instant import DAY, HOUR, Instant
from leadline.storage.core.refusal import Unavailable
from leadline.storage.engine.partitions import drop_partitions, make_partitions, partitions
from leadline.storage.engine.pools import Pool, TransactionOutcome, open_pool
from tests.support.worlds.blocked import until_blocked

HANGS_SECONDS = 30
MONDAY = Instant(1_767_571_200_000_000)  # 2026-01-05T00:00:00Z
SCHEMA = """
create table beats (org int not null, ts timestamptz not null, note text, primary key (org, ts))
partition by range (ts)
"""


@pytest.fixture
async def pool(empty_dsn: str) -> AsyncIterator[Pool]:
    async with open_pool(empty_dsn, name="test", size=4, clock=lambda: MONDAY) as pool:
        async with pool.statement("make") as tx:
            await tx.execute(SCHEMA)
        yield pool


def day(number: int) -> Instant:
    return Instant(MONDAY + number * DAY)


async def make_days(pool: Pool, first: int, last: int) -> list[str]:
    return await make_partitions(pool, "beats", "ts", from_=day(first), through=day(last))


async def names(pool: Pool) -> list[str]:
    return [partition.name for partition in await partitions(pool, "beats")]


async def test_partitions_cover_the_days_and_are_created_once(pool: Pool) -> None:
    made = await make_partitions(
        pool, "beats", "ts", from_=Instant(MONDAY + 5 * HOUR), through=Instant(day(2) + 5)
    )
    assert made == ["beats_20260105", "beats_20260106", "beats_20260107"]
    assert await make_days(pool, 0, 3) == ["beats_20260108"]
    found = await partitions(pool, "beats")
    assert [(p.from_, p.until, p.detach_pending) for p in found] == [
        (day(n), day(n + 1), False) for n in range(4)
    ]
    async with pool.statement("look") as tx:
        # The parent's key was created with them, and the check constraint that avoids the scan was
        # dropped.
        assert await tx.rows(
            "select contype::text, count(*) from pg_constraint where conrelid ="
            " 'beats_20260105'::regclass and contype <> 'n' group by 1"
        ) == [("p", 1)]


async def test_a_change_of_width_keeps_existing_partitions(pool: Pool) -> None:
    await make_days(pool, 0, 0)
    made = await make_partitions(
        pool, "beats", "ts", from_=day(0), through=Instant(day(1) + 7 * HOUR), width_us=6 * HOUR
    )
    assert made == ["beats_20260106", "beats_20260106_0600"]
    # Back to days: a day that was begun in quarters is completed by one partition for the rest.
    assert await make_days(pool, 0, 2) == ["beats_20260106_1200", "beats_20260107"]
    found = await partitions(pool, "beats")
    assert [p.from_ for p in found[1:]] == [p.until for p in found[:-1]]


async def test_concurrent_processes_create_each_partition_once(pool: Pool) -> None:
    made: list[str] = []

    async def make() -> None:
        made.extend(await make_days(pool, 0, 6))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(make)
        nursery.start_soon(make)
    assert sorted(made) == await names(pool)
    assert len(made) == 7


async def test_a_creation_waits_for_a_concurrent_row_type(pool: Pool, empty_dsn: str) -> None:
    # Two concurrent creations: the second finds the row type of the first, but not yet its table.
    async with pool.statement("meanwhile") as tx:
        await tx.execute("create type beats_20260105 as (n int)")
    made: list[str] = []
    in_vain = trio.Event()

    def observe(name: str, _seconds: float, outcome: TransactionOutcome) -> None:
        if (name, outcome) == ("make_partition", TransactionOutcome.FAILED):
            in_vain.set()

    async with (
        open_pool(empty_dsn, name="make", size=1, clock=lambda: MONDAY, observe=observe) as making,
        trio.open_nursery() as nursery,
    ):

        async def make() -> None:
            made.extend(await make_days(making, 0, 0))

        nursery.start_soon(make)
        with trio.fail_after(HANGS_SECONDS):
            await in_vain.wait()
        async with pool.statement("gone") as tx:
            await tx.execute("drop type beats_20260105")
    assert made == ["beats_20260105"]


async def test_creation_and_dropping_do_not_block_readers_and_writers(
    pool: Pool, empty_dsn: str
) -> None:
    await make_days(pool, 0, 8)
    written = 0

    async def write(task_status: trio.TaskStatus[None]) -> None:
        nonlocal written
        task_status.started()
        while True:
            async with pool.statement("write") as tx:
                await tx.execute(
                    "insert into beats select %(n)s, timestamptz '2026-01-12T12:00:00Z'", n=written
                )
            written += 1
            await trio.sleep(0.001)

    async def write_more() -> None:
        enough = written + 20
        with trio.fail_after(HANGS_SECONDS):
            while written < enough:  # noqa: ASYNC110 - a counter sets no event
                await trio.sleep(0.01)

    async with trio.open_nursery() as nursery:
        await nursery.start(write)
        with psycopg.connect(empty_dsn) as reader:
            # A transaction that has read all partitions, and stays open.
            reader.execute("select count(*) from beats")
            assert await make_days(pool, 9, 12)
            async with trio.open_nursery() as dropping:
                dropping.start_soon(partial(drop_partitions, pool, "beats", before=day(4)))
                # The drop waits for the reader, and writers continue.
                await until_blocked(pool)
                await write_more()
                dropping.cancel_scope.cancel()
            assert (await partitions(pool, "beats"))[0].detach_pending
            assert await make_days(pool, 13, 14)
        # The drop continues after the reader has ended.
        assert await drop_partitions(pool, "beats", before=day(4)) == [
            f"beats_2026010{n}" for n in range(5, 9)
        ]
        nursery.cancel_scope.cancel()
    assert (await names(pool))[0] == "beats_20260109"


async def test_a_detached_partition_is_dropped_later(pool: Pool) -> None:
    await make_days(pool, 0, 3)
    async with pool.statement("interrupted") as tx:
        await tx.execute("alter table beats detach partition beats_20260105 concurrently")
    async with pool.statement("another table") as tx:
        await tx.execute("create table beats_of_other_kind (n int)")
    assert await drop_partitions(pool, "beats", before=day(0)) == []
    assert await drop_partitions(pool, "beats", before=day(1)) == ["beats_20260105"]
    async with pool.statement("look") as tx:
        assert await tx.value("select to_regclass('beats_of_other_kind') is not null")


async def test_a_name_used_by_another_table_is_an_error(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leadline.storage.engine.partitions.PAUSE_SECONDS", 0)
    async with pool.statement("in the way") as tx:
        await tx.execute("create table beats_20260105 (n int)")
    with pytest.raises(Unavailable, match="cannot be made"):
        await make_days(pool, 0, 0)


async def test_a_name_that_needs_quotes_is_refused(pool: Pool) -> None:
    with pytest.raises(ValueError, match="plain identifier"):
        await make_partitions(pool, "beats; drop table x", "ts", from_=day(0), through=day(0))
