"""Pools: waiting in order, reasons of refusals, cancellation without loss, and no broken
connection.
"""

import random
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec
import psycopg
import pytest
import trio
import trio.lowlevel
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from leadline.storage.core.instant import Instant
from leadline.storage.core.refusal import Refused, Unavailable
from leadline.storage.engine import pools
from leadline.storage.engine.pools import (
    Conflicted,
    Isolation,
    LockRank,
    OutcomeUnknown,
    Pool,
    Rejected,
    TransactionOutcome,
    Tx,
    holding_connection,
    open_pool,
)


def test_a_task_gets_a_connection_in_time_after_a_short_outage() -> None:
    """Uses the longest pauses between attempts to connect, for each length of an outage up
    to 3 s.
    """
    attempts, pause = [0.0], pools.FIRST_KNOCK_SECONDS
    while attempts[-1] < pools.ACQUIRE_SECONDS:
        attempts.append(attempts[-1] + 1.25 * pause)
        pause = min(2 * pause, pools.LAST_KNOCK_SECONDS)
    for tenths in range(31):
        assert min(at for at in attempts if at >= tenths / 10) < pools.ACQUIRE_SECONDS - 0.5


@pytest.fixture
async def small(empty_dsn: str) -> AsyncIterator[Pool]:
    """Two connections, a short deadline, and a clock that advances with each reading."""
    readings = iter(range(1, 1000))
    async with open_pool(
        empty_dsn,
        name="small",
        size=2,
        clock=lambda: Instant(next(readings)),
        acquire_seconds=0.3,
    ) as pool:
        yield pool


@pytest.mark.parametrize("prepares", [True, False])
async def test_a_pool_behind_a_pooler_prepares_no_statement(empty_dsn: str, prepares: bool) -> None:
    clock = partial(Instant, 1)
    async with open_pool(empty_dsn, name="p", size=1, clock=clock, prepares=prepares) as pool:
        for _ in range(10):
            async with pool.statement("count") as tx:
                ((found,),) = await tx.rows("select count(*) from pg_prepared_statements")
    assert (found > 0) == prepares


class Thing(msgspec.Struct, frozen=True):
    n: int
    text: str


@dataclass(frozen=True, slots=True)
class Pair:
    n: int
    text: str


# Transactions.


async def test_rows_have_the_requested_type(small: Pool) -> None:
    query = "select * from (values (1, 'a'), (2, 'b')) t (n, text) where n <= %(most)s order by n"
    async with small.transaction("read") as tx:
        assert await tx.rows(query, most=2) == [(1, "a"), (2, "b")]
        assert await tx.row(query, most=1) == (1, "a")
        assert await tx.row(query, most=0) is None
        assert await tx.value(query, most=1) == 1
        assert await tx.value(query, most=0) is None
        assert await tx.structs(Thing, query, most=2) == [Thing(1, "a"), Thing(2, "b")]
        assert await tx.one(Pair, query, most=1) == Pair(1, "a")
        assert await tx.one(Pair, query, most=0) is None


async def test_an_exception_rolls_back_a_transaction(small: Pool) -> None:
    async with small.transaction("make") as tx:
        await tx.execute("create table things (n int, text text)")
        assert await tx.copy_rows("copy things from stdin", [(1, "a\tb"), (2, None)]) == 2

    async def refuse() -> None:
        async with small.transaction("refuse") as tx:
            assert await tx.execute("update things set n = n + %(by)s", by=5) == 2
            raise Refused("in_use")

    with pytest.raises(Refused):
        await refuse()
    async with small.statement("look") as tx:
        assert await tx.rows("select n, text from things order by n") == [(1, "a\tb"), (2, None)]


@pytest.mark.parametrize(
    ("parameters", "says"),
    [({}, "missing a"), ({"a": 1, "b": 2}, "surplus b"), ({"b": 2}, "missing a; surplus b")],
)
async def test_wrong_parameters_raise_before_the_statement_is_sent(
    small: Pool, parameters: dict[str, int], says: str
) -> None:
    async with small.transaction("t") as tx:
        with pytest.raises(TypeError, match=says):
            await tx.rows("select %(a)s", **parameters)
        # The statement was not sent, so the transaction did not fail.
        assert await tx.value("select %(a)s + %(a)s", a=2) == 4


async def test_a_percent_sign_must_be_doubled(small: Pool) -> None:
    async with small.transaction("t") as tx:
        assert await tx.value("select 'abc' like 'a%%'") is True
        with pytest.raises(TypeError, match="write %%"):
            await tx.value("select 'abc' like 'a%'")


async def test_a_transaction_has_one_reading_of_the_clock(small: Pool) -> None:
    async with small.transaction("t") as tx:
        assert (tx.now, tx.now) == (1, 1)
    async with small.transaction("t") as tx:
        assert tx.now == 2


async def test_a_statement_transaction_has_one_statement(small: Pool) -> None:
    async with small.statement("make") as tx:
        await tx.execute("create table things (n int)")
        with pytest.raises(RuntimeError, match="second statement"):
            await tx.execute("drop table things")
    async with small.statement("look") as tx:
        assert await tx.value("select count(*) from things") == 0


async def test_locks_are_taken_in_one_order(small: Pool) -> None:
    async with small.transaction("t") as tx:
        tx.lock_rank(LockRank.PROJECT, "the project")
        tx.lock_rank(LockRank.STATE, "the state")
        tx.lock_rank(LockRank.STATE, "another state")
        with pytest.raises(AssertionError, match="the shard"):
            tx.lock_rank(LockRank.SHARD, "the shard")
    async with small.transaction("t") as tx:
        tx.lock_rank(LockRank.ORGANIZATION, "each transaction begins anew")


async def test_a_read_only_transaction_sees_one_snapshot(small: Pool, empty_dsn: str) -> None:
    async with small.transaction("make") as tx:
        await tx.execute("create table things (n int)")
    with pytest.raises((Rejected, Unavailable)):
        async with small.transaction("t", read_only=True) as tx:
            await tx.execute("insert into things values (1)")
    async with small.transaction(
        "t", read_only=True, isolation=Isolation.REPEATABLE_READ, statement_timeout_seconds=2
    ) as tx:
        assert await tx.value("select count(*) from things") == 0
        assert await tx.value("show statement_timeout") == "2s"
        beside(empty_dsn, "insert into things values (1)")
        assert await tx.value("select count(*) from things") == 0


def beside(dsn: str, query: str) -> None:
    """Runs a query on another connection, while no other task runs."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(query.encode())


async def test_a_snapshot_ends_after_its_limit(
    small: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "SNAPSHOT_SECONDS", 0.1)

    async def look_long() -> None:
        async with small.transaction("slow", read_only=True) as tx:
            for _ in range(100):
                await tx.value("select pg_sleep(0.02)")

    with trio.fail_after(30), pytest.raises(Unavailable, match="snapshot"):
        await look_long()
    assert small.counts().idle == small.counts().open


async def test_every_outcome_is_observed(empty_dsn: str) -> None:
    told: list[tuple[str, TransactionOutcome]] = []
    async with open_pool(
        empty_dsn,
        name="told",
        size=1,
        clock=lambda: Instant(0),
        observe=lambda name, seconds, outcome: told.append((name, outcome)),
    ) as pool:
        async with pool.transaction("good"):
            pass
        with pytest.raises(Refused):
            async with pool.transaction("refused"):
                raise Refused("x")
        with pytest.raises(Rejected):
            async with pool.transaction("failed") as tx:
                await tx.rows("select 1/0")
        with trio.move_on_after(0.05):
            async with pool.transaction("cancelled") as tx:
                await tx.rows("select pg_sleep(10)")
        with pytest.raises(Unavailable):
            async with pool.transaction("away", statement_timeout_seconds=0.05) as tx:
                await tx.rows("select pg_sleep(10)")
    assert [(name, str(outcome)) for name, outcome in told] == [
        ("good", "committed"),
        ("refused", "refused"),
        ("failed", "failed"),
        ("cancelled", "cancelled"),
        ("away", "unavailable"),
    ]


async def test_a_violated_constraint_is_named(small: Pool) -> None:
    async with small.statement("make") as tx:
        await tx.execute("create table things (n int constraint once unique)")
    with pytest.raises(Rejected) as caught:
        async with small.transaction("twice") as tx:
            await tx.execute("insert into things values (1), (1)")
    assert (caught.value.constraint, caught.value.sqlstate) == ("once", "23505")


# Conflicts.


async def test_a_deadlock_is_retried(small: Pool) -> None:
    async with small.transaction("make") as tx:
        await tx.execute("create table things (id int, n int)")
        await tx.execute("insert into things values (1, 0), (2, 0)")
    both_hold_one = Barrier(2)

    async def add(first: int, second: int) -> None:
        async def work(tx: Tx) -> None:
            await tx.execute("update things set n = n + 1 where id = %(id)s", id=first)
            await both_hold_one.arrive()
            await tx.execute("update things set n = n + 1 where id = %(id)s", id=second)

        await small.transact("add", work)

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(add, 1, 2)
            nursery.start_soon(add, 2, 1)
    assert both_hold_one.arrived >= 3, "one transaction was retried"
    async with small.statement("look") as tx:
        assert await tx.rows("select n from things") == [(2,), (2,)]


class Barrier:
    def __init__(self, parties: int) -> None:
        self.arrived = 0
        self._parties = parties
        self._open = trio.Event()

    async def arrive(self) -> None:
        self.arrived += 1
        if self.arrived >= self._parties:
            self._open.set()
        await self._open.wait()


async def test_a_permanent_conflict_raises_after_the_last_attempt(small: Pool) -> None:
    attempts = 0

    async def work(tx: Tx) -> None:
        nonlocal attempts
        attempts += 1
        await tx.execute("do $$ begin raise exception 'x' using errcode = '40001'; end $$")

    with pytest.raises(Conflicted):
        await small.transact("never", work, attempts=3)
    assert attempts == 3


# Lending.


async def test_a_task_gets_only_one_connection(small: Pool) -> None:
    assert not holding_connection()
    seen = []

    async def child() -> None:
        await trio.lowlevel.checkpoint()
        seen.append(holding_connection())

    async with small.transaction("outer"):
        assert holding_connection()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(child)
            nursery.start_soon(child)
        with pytest.raises(RuntimeError, match="requested another one"):
            async with small.transaction("inner"):
                pass
    assert seen == [False, False]
    assert not holding_connection()


async def test_waiting_tasks_are_served_in_order(small: Pool) -> None:
    served = []
    enough, all_served = trio.Event(), trio.Event()

    async def wait(number: int) -> None:
        async with small.transaction("wait"):
            served.append(number)
            if len(served) == 5:
                all_served.set()

    async with trio.open_nursery() as nursery:
        await nursery.start(hold, small, trio.Event())
        await nursery.start(hold, small, enough)
        for number in range(5):
            nursery.start_soon(wait, number)
            await trio.testing.wait_all_tasks_blocked()
        assert small.counts().waiting == 5
        enough.set()
        await all_served.wait()
        nursery.cancel_scope.cancel()
    assert served == [0, 1, 2, 3, 4]


async def hold(pool: Pool, until: trio.Event, task_status: trio.TaskStatus[None]) -> None:
    async with pool.transaction("hold"):
        task_status.started()
        await until.wait()


async def test_a_task_that_waits_too_long_gets_the_reason(small: Pool) -> None:
    async with trio.open_nursery() as nursery:
        await nursery.start(hold, small, trio.Event())
        await nursery.start(hold, small, trio.Event())
        with trio.fail_after(30), pytest.raises(Unavailable, match=r"small within 0\.3 s: 2 of 2"):
            async with small.transaction("late"):
                pass
        nursery.cancel_scope.cancel()
    assert small.counts().waiting == 0


async def test_cancellations_at_any_point_lose_no_connection(small: Pool) -> None:
    chance = random.Random(7)

    async def visit() -> None:
        for _ in range(30):
            with trio.move_on_after(chance.uniform(0, 0.006)):
                async with small.transaction("visit") as tx:
                    await tx.value("select pg_sleep(0.001)")

    async with trio.open_nursery() as nursery:
        for _ in range(8):
            nursery.start_soon(visit)
    counts = small.counts()
    assert counts.waiting == 0
    assert counts.idle == counts.open <= 2
    # Every remaining connection works.
    async with trio.open_nursery() as nursery:
        for _ in range(6):
            nursery.start_soon(ask, small)


async def ask(pool: Pool) -> None:
    async with pool.statement("ask") as tx:
        assert await tx.value("select 1") == 1


async def test_a_connection_for_a_cancelled_waiter_goes_to_the_next(small: Pool) -> None:
    """The connection is given and the waiter cancelled within one step of the scheduler."""
    served = []
    scope = trio.CancelScope()

    async def wait_cancelled() -> None:
        with scope:
            async with small.transaction("wait"):
                await trio.lowlevel.checkpoint()
                served.append("cancelled")

    async def wait() -> None:
        async with small.transaction("wait"):
            served.append("next")

    async with trio.open_nursery() as nursery:
        await nursery.start(hold, small, trio.Event())
        async with trio.open_nursery() as waiters:
            # The second connection is in use until both tasks wait.
            lent = await small._take()
            waiters.start_soon(wait_cancelled)
            await trio.testing.wait_all_tasks_blocked()
            waiters.start_soon(wait)
            await trio.testing.wait_all_tasks_blocked()
            assert small.counts().waiting == 2
            small._put(lent)
            scope.cancel()
        nursery.cancel_scope.cancel()
    assert served == ["next"]
    assert small.counts().idle == small.counts().open == 2


async def test_a_broken_connection_is_not_lent_again(small: Pool, empty_dsn: str) -> None:
    async with small.transaction("first") as tx:
        first = await tx.value("select pg_backend_pid()")
    beside(empty_dsn, f"select pg_terminate_backend({first}, 5000)")
    async with small.transaction("second") as tx:
        assert await tx.value("select pg_backend_pid()") != first


async def test_an_idle_connection_is_pinged_first(
    small: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "PING_AFTER_SECONDS", 0)
    async with small.transaction("a") as tx:
        pid = await tx.value("select pg_backend_pid()")
    async with small.transaction("b") as tx:
        assert await tx.value("select pg_backend_pid()") == pid


async def test_an_old_connection_is_replaced(small: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "LIFETIME_SECONDS", 0.05)
    pids = set()
    for _ in range(3):
        async with small.transaction("t") as tx:
            pids.add(await tx.value("select pg_backend_pid() from pg_sleep(0.1)"))
    assert len(pids) == 3


async def test_a_connection_is_returned_without_its_transaction(small: Pool) -> None:
    async def fail() -> None:
        async with small.transaction("t") as tx:
            await tx.execute("create table things (n int)")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    async with small.transaction("t") as tx:
        assert await tx.value("select to_regclass('things') is null")


# Unavailable servers.


class Relay:
    """A proxy of the server: counts connections, and breaks them as the test sets."""

    def __init__(self, target: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="relay-"))
        self.visits: list[float] = []
        self.is_away = False
        # Breaks the connection at a COMMIT, "before" the server receives it, or "after" the server
        # has executed it.
        self.cut = ""
        self._target = target

    async def serve(self, task_status: trio.TaskStatus[None]) -> None:
        listener = trio.socket.socket(trio.socket.AF_UNIX)
        await listener.bind(str(self.folder / ".s.PGSQL.5432"))
        listener.listen(50)
        with listener:
            async with trio.open_nursery() as nursery:
                task_status.started()
                while True:
                    client, _ = await listener.accept()
                    self.visits.append(trio.current_time())
                    if self.is_away:
                        client.close()
                    else:
                        nursery.start_soon(self._relay, trio.SocketStream(client))

    async def _relay(self, client: trio.SocketStream) -> None:
        server = await trio.open_unix_socket(self._target)
        committing = False

        async def forth() -> None:
            nonlocal committing
            with suppress(trio.BrokenResourceError):
                async for data in client:
                    committing = b"COMMIT" in data
                    if committing and self.cut == "before":
                        break
                    await server.send_all(data)
            nursery.cancel_scope.cancel()

        async def back() -> None:
            with suppress(trio.BrokenResourceError):
                async for data in server:
                    if committing and self.cut == "after":
                        break
                    await client.send_all(data)
            nursery.cancel_scope.cancel()

        async with client, server, trio.open_nursery() as nursery:
            nursery.start_soon(forth)
            nursery.start_soon(back)


@asynccontextmanager
async def relayed(dsn: str) -> AsyncIterator[tuple[Relay, Pool]]:
    parameters = conninfo_to_dict(dsn)
    relay = Relay(f"{parameters['host']}/.s.PGSQL.5432")
    through = make_conninfo(dsn, host=str(relay.folder))
    try:
        async with trio.open_nursery() as nursery:
            await nursery.start(relay.serve)
            async with open_pool(
                through, name="relayed", size=2, clock=lambda: Instant(0), acquire_seconds=0.5
            ) as pool:
                yield relay, pool
            nursery.cancel_scope.cancel()
    finally:
        shutil.rmtree(relay.folder)


@pytest.mark.parametrize(("cut", "rows"), [("before", 0), ("after", 1)])
async def test_a_commit_without_an_answer_is_an_unknown_outcome(
    empty_dsn: str, cut: str, rows: int
) -> None:
    async with relayed(empty_dsn) as (relay, pool):
        async with pool.statement("make") as tx:
            await tx.execute("create table things (n int)")
        relay.cut = cut
        with pytest.raises(OutcomeUnknown):
            async with pool.transaction("write") as tx:
                await tx.execute("insert into things values (1)")
        relay.cut = ""
        async with pool.statement("look") as tx:
            assert await tx.value("select count(*) from things") == rows


async def test_a_connection_lost_before_the_commit_is_unavailable(empty_dsn: str) -> None:
    async with relayed(empty_dsn) as (_, pool):

        async def lose_it() -> None:
            async with pool.transaction("write") as tx:
                pid = await tx.value("select pg_backend_pid()")
                beside(empty_dsn, f"select pg_terminate_backend({pid}, 5000)")
                await tx.value("select 1")

        with pytest.raises(Unavailable) as caught:
            await lose_it()
        assert not isinstance(caught.value, OutcomeUnknown)


async def test_an_interrupted_statement_is_an_unknown_outcome(empty_dsn: str) -> None:
    async with relayed(empty_dsn) as (relay, pool):

        async def write() -> None:
            async with pool.statement("write") as tx:
                relay.cut = "before"
                await tx.execute("select 1 /* COMMIT */")

        with pytest.raises(OutcomeUnknown):
            await write()


async def test_one_task_reconnects_with_growing_pauses(
    empty_dsn: str,
) -> None:
    async with relayed(empty_dsn) as (relay, pool):
        relay.is_away = True
        told = []

        async def ask_in_vain() -> None:
            with pytest.raises(Unavailable, match="cannot connect") as caught:
                async with pool.transaction("ask"):
                    pass
            told.append(caught.value)

        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(ask_in_vain)
        assert len(told) == 20
        # At 0, 0.1 and 0.3 s, approximately: not one attempt for each waiting task.
        assert 2 <= len(relay.visits) <= 4
        assert pool.counts().cause
        relay.is_away = False
        async with pool.transaction("back"):
            pass
        assert pool.counts().cause == ""


async def write_notes(tx: Tx, *ids: int) -> None:
    async with tx.savepoint():
        for note in ids:
            await tx.execute("insert into notes values (%(id)s)", id=note)


async def test_a_rejected_block_is_undone_and_the_transaction_goes_on(small: Pool) -> None:
    async with small.transaction("attempts") as tx:
        await tx.execute("create temporary table notes (id int primary key) on commit drop")
        await write_notes(tx, 1)
        with pytest.raises(Rejected):
            await write_notes(tx, 2, 1)
        await tx.execute("insert into notes values (3)")
        assert await tx.rows("select id from notes order by id") == [(1,), (3,)]
