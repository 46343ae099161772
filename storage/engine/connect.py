"""Connections with timeouts, UTC and an application name, and connections that listen to NOTIFY.

A failed attempt raises Unavailable.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

import psycopg
import trio
from psycopg import generators, sql
from psycopg._conninfo_utils import get_param, is_ip_address, split_attempts
from psycopg.abc import ConnDict
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from ..core.refusal import Unavailable
from .database_errors import UnusableDatabase, connect_error, renamed
from .libpq_connect import connecting
from .trio_postgres import STATEMENT_SECONDS, Connection, drive_elsewhere

CONNECT_SECONDS: Final = 10
# Bound of one host of several: a host that is frozen accepts a connection and never answers.
HOST_SECONDS: Final = 3
OLDEST_SERVER: Final = 150000
LOCK_SECONDS: Final = 5
IDLE_IN_TRANSACTION_SECONDS: Final = 20

# A server that vanished is noticed in about 25 s on TCP, also while nothing is sent.
_NETWORK: Final = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,
}
_Place = tuple[str, ...]
# Set by statement and not in the start-up packet, which pgbouncer refuses.
_SETTINGS: Final = (
    # Without it the query of a client that was killed runs on.
    "SET client_connection_check_interval = '500ms';"
    f"SET statement_timeout = '{STATEMENT_SECONDS}s';"
    f"SET lock_timeout = '{LOCK_SECONDS}s';"
    f"SET idle_in_transaction_session_timeout = '{IDLE_IN_TRANSACTION_SECONDS}s';"
    # Just-in-time compilation takes longer than any statement here gains: seconds in each step of
    # packing.
    "SET jit = off;"
    # A writer of a result reads its window after it has locked the state: with the snapshot of a
    # stricter level it would not see the verdict of the writer it waited for.
    "SET default_transaction_isolation = 'read committed';"
    "SET TimeZone = 'UTC'"
).encode()


async def connect(
    dsn: str, *, name: str = "leadline", seconds: float = CONNECT_SECONDS
) -> Connection:
    """Returns a new connection with its settings.

    Raises Unavailable with the cause, UnusableDatabase if the same attempt would fail again.
    `name` is the application_name that the server shows. The host that answered last is asked
    first.
    """
    with trio.move_on_after(seconds):
        try:
            attempts = await _attempts(dsn, name)
        except psycopg.Error as error:
            raise UnusableDatabase(f"database.dsn: {str(error).strip()}") from error
        attempts.sort(key=lambda attempt: _place(attempt) != _answered.get(dsn))
        # Within half of the time, so that a frozen host never uses up the time of the next one.
        bound = seconds if len(attempts) == 1 else min(HOST_SECONDS, seconds / 2 / len(attempts))
        connection, place = await _connect(attempts, bound)
        _answered[dsn] = place
        return connection
    raise Unavailable(f"cannot connect: no answer within {seconds:g} s")


# Host of each DSN that answered last in this process. Processes have one DSN, backups a second one.
_answered: dict[str, _Place] = {}


def _place(attempt: ConnDict) -> _Place:
    return tuple(str(attempt.get(name, "")) for name in ("host", "hostaddr", "port"))


async def _connect(attempts: Sequence[ConnDict], bound: float) -> tuple[Connection, _Place]:
    """Returns the first connection that succeeds, over all hosts, and its host.

    Each attempt takes at most `bound` seconds. Raises the last error that waiting can repair, or
    else the last one. It is UnusableDatabase only if all hosts would refuse again.
    """
    failures: list[Unavailable] = []
    for attempt in attempts:
        try:
            with trio.move_on_after(bound):
                return await _open(make_conninfo("", **attempt)), _place(attempt)
            host = attempt.get("host") or "the host"
            failures.append(Unavailable(f"cannot connect: {host}: no answer within {bound:g} s"))
        except psycopg.Error as error:
            failures.append(connect_error(error))
        except UnusableDatabase as error:
            failures.append(error)
    worth_waiting = [one for one in failures if not isinstance(one, UnusableDatabase)]
    raise (worth_waiting or failures or [Unavailable("cannot connect: no host")])[-1]


async def _open(conninfo: str) -> Connection:
    connection = Connection(await drive_elsewhere(connecting(conninfo)))
    try:
        # Checked before the settings, since an older server does not know some of them.
        _refuse_old_server(connection)
        await connection.command(_SETTINGS)
    except BaseException:
        connection.discard()
        raise
    return connection


def _refuse_old_server(connection: Connection) -> None:
    version = connection.info.server_version
    if version < OLDEST_SERVER:
        raise UnusableDatabase(
            f"this is PostgreSQL {version // 10000}, leadline needs {OLDEST_SERVER // 10000}"
            " or newer; nothing was changed"
        )


async def _attempts(dsn: str, name: str) -> list[ConnDict]:
    """Returns a set of parameters for each address of each host of the DSN."""
    given = conninfo_to_dict(dsn)
    attempts: list[ConnDict] = []
    for one in split_attempts({**_NETWORK, "application_name": name, **given}):
        host = get_param(one, "host")
        if not host or host.startswith("/") or get_param(one, "hostaddr"):
            attempts.append(one)
        elif is_ip_address(host):
            attempts.append({**one, "hostaddr": host})
        else:
            attempts += [{**one, "hostaddr": address} for address in await _resolve(host)]
    return attempts


async def _resolve(host: str) -> list[str]:
    """Resolves with getaddrinfo in a thread, which follows the system's configuration."""
    try:
        found = await trio.socket.getaddrinfo(host, None, type=trio.socket.SOCK_STREAM)
    except OSError as error:
        raise Unavailable(f"cannot connect: cannot resolve {host}: {error.strerror}") from error
    return [str(item[4][0]) for item in found]


class NotifyMessage(NamedTuple):
    channel: str
    payload: str


class NotifyListener:
    """Receiver of NOTIFY messages on its own connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._arrived: list[NotifyMessage] = []
        connection.add_notify_handler(
            lambda notify: self._arrived.append(NotifyMessage(notify.channel, notify.payload))
        )

    async def batch(self) -> list[NotifyMessage]:
        """Waits for a message. Returns all received ones. Raises Unavailable."""
        pgconn = self._connection.pgconn
        try:
            while not self._arrived:
                async with self._connection.lock:
                    await self._connection.wait(generators.notifies(pgconn))
        except psycopg.Error as error:
            raise renamed(error, lost=True) from error
        arrived, self._arrived = self._arrived, []
        return arrived


@asynccontextmanager
async def listening(
    dsn: str, *channels: str, name: str = "leadline listen"
) -> AsyncIterator[NotifyListener]:
    """Yields a NotifyListener for the channels. It gets every message sent after the entry.

    Raises Unavailable."""
    connection = await connect(dsn, name=name)
    try:
        listener = NotifyListener(connection)
        for channel in channels:
            listen = sql.SQL("LISTEN {}").format(sql.Identifier(channel))
            try:
                await connection.command(listen.as_bytes())
            except psycopg.Error as error:
                # Also a standby, which refuses LISTEN until it is promoted.
                raise renamed(error, lost=True) from error
        yield listener
    finally:
        connection.discard()
