"""A connection on Trio: after any cancellation it is usable or discarded, and the server is
idle.
"""

import os
import random
import re
import secrets
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import date
from typing import Any
from uuid import UUID

import psycopg
import pytest
import trio
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from leadline.storage.core.refusal import Unavailable
from leadline.storage.engine import connect as connecting
from leadline.storage.engine import trio_postgres as postgres
from leadline.storage.engine.connect import NotifyMessage, connect, listening
from leadline.storage.engine.database_errors import OutcomeUnknown, UnusableDatabase, connect_error
from leadline.storage.engine.libpq_connect import _error_of
from leadline.storage.engine.trio_postgres import Connection, Cursor
from leadline.storage.engine.value_types import FOREVER, NEVER

HANGS_SECONDS = 30


async def rows(connection: Connection, query: str, *parameters: object) -> list[tuple[Any, ...]]:
    cursor = Cursor(connection)
    await cursor.execute(query.encode(), parameters)
    return await cursor.fetchall()


@pytest.fixture
async def connection(empty_dsn: str):
    connection = await connect(empty_dsn, name="leadline test")
    yield connection
    connection.discard()


async def busy_elsewhere(dsn: str) -> list[tuple[Any, ...]]:
    """Waits until the server is idle in this database; returns the statements that still run."""
    watcher = await connect(dsn, name="watcher")
    until = trio.current_time() + HANGS_SECONDS
    try:
        while True:
            found = await rows(
                watcher,
                "select state, query from pg_stat_activity where datname = current_database()"
                " and backend_type = 'client backend' and pid <> pg_backend_pid()"
                " and state <> 'idle'",
            )
            if not found or trio.current_time() > until:
                return found
            await trio.sleep(0.02)
    finally:
        watcher.discard()


async def test_values_are_converted_exactly(connection: Connection) -> None:
    (found,) = await rows(
        connection,
        "select timestamptz '2026-01-05T10:20:30.123457Z',"
        " timestamptz '1969-12-31T23:59:59.999999Z',"
        " timestamptz 'infinity', timestamptz '-infinity', date '2026-01-05',"
        " uuid '01234567-89ab-7def-8123-456789abcdef', jsonb '{\"a\": [1, 2.5, null]}',"
        " $1, $2::text[]",
        2**40,
        ["a", "ü"],
    )
    assert found == (
        1_767_608_430_123_457,
        -1,
        FOREVER,
        NEVER,
        date(2026, 1, 5),
        UUID("01234567-89ab-7def-8123-456789abcdef"),
        {"a": [1, 2.5, None]},
        2**40,
        ["a", "ü"],
    )


async def test_an_integer_has_one_type_whatever_its_size(connection: Connection) -> None:
    for number in (1, 2**20, 2**40):
        assert await rows(connection, "select pg_typeof($1)::text", number) == [("bigint",)]


async def test_every_connection_has_its_timeouts(connection: Connection) -> None:
    wanted = {
        "client_connection_check_interval": "500ms",
        "statement_timeout": "15s",
        "lock_timeout": "5s",
        "idle_in_transaction_session_timeout": "20s",
        "TimeZone": "UTC",
        "jit": "off",
        "application_name": "leadline test",
    }
    for name, value in wanted.items():
        assert await rows(connection, "select current_setting($1)", name) == [(value,)], name


async def test_a_transaction_sees_what_was_committed_while_it_waited(empty_dsn: str) -> None:
    """The database can have another default. Writers of results need this one."""
    with psycopg.connect(empty_dsn, autocommit=True) as owner:
        owner.execute(
            psycopg.sql.SQL(
                "alter database {} set default_transaction_isolation = 'repeatable read'"
            ).format(psycopg.sql.Identifier(owner.info.dbname))
        )
    connection = await connect(empty_dsn, name="leadline test")
    found = await rows(connection, "select current_setting('transaction_isolation')")
    connection.discard()
    assert found == [("read committed",)]


async def test_a_cancelled_statement_ends_and_the_connection_stays_usable(
    connection: Connection, empty_dsn: str
) -> None:
    with trio.move_on_after(0.05) as scope:
        await rows(connection, "select pg_sleep(60)")
    assert scope.cancelled_caught
    assert await rows(connection, "select 1") == [(1,)]
    assert await busy_elsewhere(empty_dsn) == []


async def test_a_server_that_goes_away_before_listen_is_unavailable(
    empty_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another error would end the daemon, since its listener is not restarted."""

    async def connect_and_lose(dsn: str, *, name: str) -> Connection:
        found = await connect(dsn, name=name)
        await end_backend(dsn, found.info.backend_pid)
        return found

    monkeypatch.setattr(connecting, "connect", connect_and_lose)
    with trio.fail_after(HANGS_SECONDS), pytest.raises(Unavailable):
        async with listening(empty_dsn, "edited"):
            pass


async def end_backend(dsn: str, pid: int) -> None:
    """Ends a server process and waits until it has ended."""
    other = await connect(dsn, name="other")
    try:
        assert await rows(other, "select pg_terminate_backend($1::int, $2)", pid, 30_000) == [
            (True,)
        ]
    finally:
        other.discard()


@contextmanager
def frozen(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


async def test_a_frozen_backend_is_abandoned_in_time(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "END_SECONDS", 0.2)
    with trio.fail_after(15), trio.move_on_after(0.1):
        async with connection.transaction():
            with frozen(connection.info.backend_pid):
                await rows(connection, "select 1")
    assert connection.closed


async def test_a_backend_frozen_at_begin_or_commit_is_abandoned(
    empty_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "END_SECONDS", 0.2)
    connection = await connect(empty_dsn)
    with trio.fail_after(30), frozen(connection.info.backend_pid):
        with pytest.raises(psycopg.OperationalError, match="BEGIN"):
            async with connection.transaction():
                pass
    assert connection.closed

    connection = await connect(empty_dsn)
    freezing = frozen(connection.info.backend_pid)
    with trio.fail_after(30), ExitStack() as stack:
        with pytest.raises(OutcomeUnknown):
            async with connection.transaction():
                stack.enter_context(freezing)
    assert connection.closed


async def copied_in(connection: Connection) -> None:
    cursor = Cursor(connection)
    async with cursor.copy(b"copy things (n, text) from stdin") as copy:
        for n in range(3000):
            await copy.write_row((n, "x" * 100))


async def copied_out(connection: Connection) -> None:
    cursor = Cursor(connection)
    async with cursor.copy(b"copy (select generate_series(1, 20000)) to stdout") as copy:
        async for _ in copy:
            pass


async def piped(connection: Connection) -> None:
    async with connection.pipeline():
        for n in range(50):
            await Cursor(connection).execute(b"insert into things (n) values ($1)", [n])


async def many(connection: Connection) -> None:
    await Cursor(connection).executemany(
        b"insert into things (n) values ($1)", [(n,) for n in range(300)]
    )


async def transacted(connection: Connection) -> None:
    async with connection.transaction():
        await rows(connection, "insert into things (n) values (1) returning n")
        await rows(connection, "select pg_sleep(0.003)")
        await rows(connection, "insert into things (n) values (2) returning n")


async def selected(connection: Connection) -> None:
    await rows(connection, "select generate_series(1, 20000) from pg_sleep(0.005)")


ROUNDS_MOST = 5
WORKS = [copied_in, copied_out, piped, many, transacted, selected]


class CancelAt(trio.abc.Instrument):
    """Cancels its scope at the n-th step of the task that created it: the next await is
    cancelled.
    """

    def __init__(self, step: int) -> None:
        self.scope = trio.CancelScope()
        self._left = step
        self._task = trio.lowlevel.current_task()

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        if task is self._task:
            self._left -= 1
            if self._left == 0:
                self.scope.cancel()


async def assert_in_order(connection: Connection, work: object) -> None:
    """Checks that the cancelled work blocks nothing, and that it was committed completely or not at
    all.
    """
    assert connection.returnable
    assert await rows(connection, "select 1") == [(1,)]
    if work is transacted:
        odd = "select count(*) filter (where n = 1) - count(*) filter (where n = 2) from things"
        assert await rows(connection, odd) == [(0,)]


@pytest.mark.parametrize("work", WORKS, ids=lambda work: work.__name__)
async def test_a_connection_cancelled_at_every_await_is_usable_or_discarded(
    work, empty_dsn: str
) -> None:
    connection = await connect(empty_dsn)
    await connection.command(b"create table things (n bigint, text text)")
    cancelled = 0
    # If every result arrives before its await, a round has no cancellation, so several rounds run.
    for step in [*range(1, 60)] * ROUNDS_MOST:
        at = CancelAt(step)
        trio.lowlevel.add_instrument(at)
        with at.scope:
            await work(connection)
        trio.lowlevel.remove_instrument(at)
        if at.scope.cancelled_caught:
            cancelled += 1
        if connection.closed:
            assert work not in (transacted, selected)
            connection = await connect(empty_dsn)
        await assert_in_order(connection, work)
        if not at.scope.cancel_called and cancelled:
            break
    assert cancelled >= 1
    connection.discard()
    assert await busy_elsewhere(empty_dsn) == []


@pytest.mark.parametrize("work", WORKS, ids=lambda work: work.__name__)
async def test_a_connection_cancelled_at_any_time_is_usable_or_discarded(
    work, empty_dsn: str
) -> None:
    chance = random.Random(work.__name__)
    connection = await connect(empty_dsn)
    await connection.command(b"create table things (n bigint, text text)")
    started = trio.current_time()
    await work(connection)
    whole = trio.current_time() - started
    for _ in range(12):
        with trio.move_on_after(chance.uniform(0, whole * 1.1)):
            await work(connection)
        if connection.closed:
            assert work not in (transacted, selected)
            connection = await connect(empty_dsn)
        await assert_in_order(connection, work)
    connection.discard()
    assert await busy_elsewhere(empty_dsn) == []


async def test_an_abandoned_copy_leaves_the_connection_usable(
    connection: Connection,
) -> None:
    cursor = Cursor(connection)
    async with cursor.copy(b"copy (select generate_series(1, 1000000)) to stdout") as copy:
        async for _ in copy:
            break
    assert await rows(connection, "select 1") == [(1,)]


async def test_a_copy_that_raises_stores_nothing(connection: Connection) -> None:
    await connection.command(b"create table things (n bigint)")

    async def fail() -> None:
        async with Cursor(connection).copy(b"copy things from stdin") as copy:
            await copy.write_row((1,))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    assert await rows(connection, "select count(*) from things") == [(0,)]


async def test_other_tasks_run_during_a_copy_that_never_waits(connection: Connection) -> None:
    await connection.command(b"create table things (n bigint)")
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(count)
        async with Cursor(connection).copy(b"copy things from stdin") as copy:
            began = turns
            # 16 blocks of 32 KiB, which the socket and libpq accept without waiting.
            for _ in range(16):
                await copy.write(b"1\n" * 16384)
            assert turns - began >= 12
        nursery.cancel_scope.cancel()


async def test_a_pipeline_answers_every_statement(connection: Connection) -> None:
    async with connection.pipeline():
        cursors = [
            await Cursor(connection).execute(b"select $1::bigint * 2", [n]) for n in range(10)
        ]
        answers = [(await cursor.fetchall())[0][0] for cursor in cursors]
    assert answers == [2 * n for n in range(10)]


async def test_concurrent_use_of_a_connection_raises(connection: Connection) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(rows, connection, "select pg_sleep(0.2)")
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(RuntimeError, match="in use"):
            await rows(connection, "select 1")


async def test_a_swallowed_error_does_not_commit(
    connection: Connection,
) -> None:
    async def swallow() -> None:
        async with connection.transaction():
            with pytest.raises(psycopg.errors.DivisionByZero):
                await rows(connection, "select 1/0")

    with pytest.raises(RuntimeError, match="nothing is committed"):
        await swallow()
    assert connection.returnable


async def test_a_listener_gets_notifications_and_the_loss_of_its_connection(
    connection: Connection, empty_dsn: str
) -> None:
    async with listening(empty_dsn, "schedules", "Odd Name") as listener:
        await connection.command(b"notify schedules, 'a'; notify \"Odd Name\"; notify other")
        heard: list[NotifyMessage] = []
        with trio.fail_after(30):
            while len(heard) < 2:
                heard += await listener.batch()
        assert [tuple(notice) for notice in heard] == [("schedules", "a"), ("Odd Name", "")]
        with trio.move_on_after(0.02):
            await listener.batch()
        # A cancelled wait loses no notification.
        await connection.command(b"notify schedules, 'b'")
        with trio.fail_after(30):
            assert [notice.payload for notice in await listener.batch()] == ["b"]
        await rows(
            connection,
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where application_name = 'leadline listen' and datname = current_database()",
        )
        with trio.fail_after(30), pytest.raises(Unavailable):
            await listener.batch()


async def test_closing_wakes_waiting_tasks(connection: Connection) -> None:
    async def close_soon() -> None:
        await trio.testing.wait_all_tasks_blocked()
        connection.discard()

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(close_soon)
            with pytest.raises((trio.ClosedResourceError, psycopg.OperationalError)):
                await rows(connection, "select pg_sleep(30)")


@pytest.mark.parametrize(
    ("dsn", "says"),
    [
        ("host=/nowhere user=x", "No such file"),
        ("host=127.0.0.1 port=1 user=x", "refused"),
        ("host=name.invalid user=x", "cannot resolve name.invalid"),
    ],
)
async def test_a_missing_server_is_unavailable_with_a_reason(dsn: str, says: str) -> None:
    with pytest.raises(Unavailable, match=says):
        await connect(dsn)


async def test_a_silent_server_is_unavailable_after_the_timeout() -> None:
    listener = trio.socket.socket()
    await listener.bind(("127.0.0.1", 0))
    listener.listen(1)
    with listener, pytest.raises(Unavailable, match=r"no answer within 0\.2 s"):
        await connect(f"host=127.0.0.1 port={listener.getsockname()[1]} user=x", seconds=0.2)


@pytest.mark.parametrize(
    ("dsn", "says"),
    [
        ("host=127.0.0.1 port=1 user", 'missing "=" after "user"'),
        ("host=127.0.0.1 port=1 colour=red", 'invalid connection option "colour"'),
        ("host=127.0.0.1 port=many", 'invalid integer value "many"'),
        ("host=127.0.0.1 port=1 sslmode=perhaps", "invalid sslmode value"),
        ("postgresql://127.0.0.1:1/x?keepalives=%zz", "invalid percent-encoded token"),
        ("host=127.0.0.1 port=1,2,3", "could not match 3 port numbers to 1 hosts"),
    ],
)
async def test_a_malformed_dsn_is_unusable_with_a_reason(dsn: str, says: str) -> None:
    with pytest.raises(UnusableDatabase, match=f"database.dsn: {re.escape(says)}"):
        await connect(dsn)


@pytest.fixture
def guarded(empty_dsn: str) -> Iterator[str]:
    """A role that can log in to its database, with the fewest connections that a test needs."""
    name = f"guest_{secrets.token_hex(4)}"
    with psycopg.connect(empty_dsn, autocommit=True) as connection:
        connection.execute(f"create role {name} login connection limit 1".encode())
        yield make_conninfo(empty_dsn, user=name)
        connection.execute(f"drop owned by {name}".encode())
        connection.execute(f"drop role {name}".encode())


async def test_permanent_refusals_of_the_server_are_unusable(empty_dsn: str, guarded: str) -> None:
    role = conninfo_to_dict(guarded)["user"]
    with psycopg.connect(empty_dsn, autocommit=True) as connection:
        database = connection.info.dbname
        for statement, dsn, says in (
            ("select 1", make_conninfo(guarded, dbname="nowhere"), "nowhere"),
            ("select 1", make_conninfo(guarded, user="nobody-here"), "nobody-here"),
            (f"revoke connect on database {database} from public", guarded, "denied"),
            (f"alter role {role} nologin", guarded, "not permitted to log in"),
        ):
            connection.execute(statement.encode())
            with pytest.raises(UnusableDatabase, match=says) as caught:
                await connect(dsn)
            assert ".c:" not in str(caught.value)


async def test_a_server_without_free_connections_is_unavailable(guarded: str) -> None:
    first = await connect(guarded)
    with pytest.raises(Unavailable, match="too many connections") as caught:
        await connect(guarded)
    assert not isinstance(caught.value, UnusableDatabase)
    first.discard()


async def test_one_missing_host_of_several_is_unavailable(guarded: str) -> None:
    host = conninfo_to_dict(guarded)["host"]
    hosts = make_conninfo(guarded, host=f"/nowhere,{host}", dbname="nowhere")
    with pytest.raises(Unavailable, match="No such file") as caught:
        await connect(hosts)
    assert not isinstance(caught.value, UnusableDatabase)


async def test_a_frozen_host_does_not_block_the_next_one(empty_dsn: str) -> None:
    """It accepts a connection and never answers, as after SIGSTOP. Afterwards it is asked last."""
    frozen = trio.socket.socket()
    await frozen.bind(("127.0.0.1", 0))
    frozen.listen(5)
    parameters = conninfo_to_dict(empty_dsn)
    ports = f"{frozen.getsockname()[1]},{parameters.get('port', 5432)}"
    dsn = make_conninfo(empty_dsn, host=f"127.0.0.1,{parameters['host']}", port=ports)
    with frozen:
        for _ in range(3):
            connection = await connect(dsn, seconds=4)
            connection.discard()
        asked = 0
        with trio.move_on_after(0.05):
            while True:
                (await frozen.accept())[0].close()
                asked += 1
    assert asked == 1


async def test_every_frozen_host_is_named() -> None:
    frozen = trio.socket.socket()
    await frozen.bind(("127.0.0.1", 0))
    frozen.listen(5)
    port = frozen.getsockname()[1]
    with frozen, pytest.raises(Unavailable, match=r"127\.0\.0\.1: no answer within 0\.1 s"):
        await connect(f"host=127.0.0.1,127.0.0.1 port={port},{port} user=x", seconds=0.4)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        # The spelling of servers in other languages.
        ("FATAL:  28P01: Passwort-Authentifizierung fehlgeschlagen\n", UnusableDatabase),
        ("ВАЖНО:  3D000: база данных не существует\n", UnusableDatabase),
        ("FATAL:  57P03: das Datenbanksystem startet\n", Unavailable),
        ("FATAL:  ZZZZZ: etwas Neues\n", Unavailable),
        ("FATAL: password authentication failed\n", Unavailable),
        # With sslmode=prefer: the attempt with TLS, then the one without.
        ("FATAL:  53300: no slots\nconnection failed: FATAL:  28000: no pg_hba\n", Unavailable),
        ("FATAL:  28000: no pg_hba\nconnection failed: FATAL:  53300: no slots\n", Unavailable),
        ("FATAL:  ZZZZZ: new\nconnection failed: FATAL:  28000: no pg_hba\n", Unavailable),
        ("FATAL:  28P01: wrong\nconnection failed: FATAL:  28000: no\n", UnusableDatabase),
    ],
)
def test_the_sqlstate_decides_instead_of_the_message(text: str, kind: type[Exception]) -> None:
    failure = connect_error(_error_of(f"connection to server at 10.0.0.1 failed: {text}"))
    assert type(failure) is kind
