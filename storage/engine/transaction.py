"""Transaction object that tables and queries use: SQL, rows, and one reading of the clock.

Invariants:
- A statement gets exactly the parameters that it names.
- Locks are taken in one order, so that transactions cannot deadlock.
- Errors of psycopg are converted.
- A server that does not respond is given up after the statement timeout plus END_SECONDS.
"""

import re
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from enum import IntEnum
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
import psycopg
import trio
from psycopg.rows import args_row, tuple_row

from ..core.instant import Instant
from ..core.refusal import Unavailable
from .database_errors import OutcomeUnknown, Rejected, must_leave, renamed
from .trio_postgres import END_SECONDS, Connection, Cursor

T = TypeVar("T")


class LockRank(IntEnum):
    """Order in which a transaction locks rows."""

    ORGANIZATION = 1
    PROJECT = 2
    REGION = 3
    SERVICE = 4
    MONITOR = 5
    SECRET = 6
    POLICY = 7
    ROSTER = 8
    CHANNEL = 9
    USE = 10
    SHARD = 11
    STATE = 12
    INCIDENT = 13
    PAGE = 14
    OUTBOX = 15
    CHANGE = 16
    SCHEDULE = 17


class Tx:
    """Open transaction, or a single statement outside a transaction (`Pool.statement`).

    SQL has parameters `%(name)s`, passed by keyword, and a literal percent sign is `%%`.

    Raises: TypeError before sending, if a parameter is missing or surplus; Unavailable with its
    subclasses OutcomeUnknown, Conflicted and LockTimeout; Rejected.
    """

    __slots__ = (
        "_clock",
        "_connection",
        "_holds_all",
        "_now",
        "_patience",
        "_rank",
        "_single",
        "name",
    )

    def __init__(
        self,
        connection: Connection,
        name: str,
        clock: Callable[[], Instant],
        *,
        seconds: float,
        single: bool,
    ) -> None:
        self.name: Final = name
        self._clock = clock
        self._now: Instant | None = None
        self._connection = connection
        self._patience = seconds + END_SECONDS
        self._rank = 0
        self._holds_all = False
        # None: any number of statements. True: one statement is allowed. False: it was executed.
        self._single: bool | None = single or None

    @property
    def now(self) -> Instant:
        """Instant of all writes of this transaction.

        Read on first use: a transaction that waited for a lock is then not earlier than the one
        that had the lock before.
        """
        if self._now is None:
            self._now = self._clock()
        return self._now

    async def rows(self, query: str, **parameters: Any) -> list[tuple[Any, ...]]:
        cursor = await self._run(query, parameters, tuple_row)
        return await cursor.fetchall()

    async def row(self, query: str, **parameters: Any) -> tuple[Any, ...] | None:
        """Returns the first row; None without a row."""
        cursor = await self._run(query, parameters, tuple_row)
        found: tuple[Any, ...] | None = await cursor.fetchone()
        return found

    async def value(self, query: str, **parameters: Any) -> Any:
        """Returns the first column of the first row; None without a row."""
        found = await self.row(query, **parameters)
        return found[0] if found else None

    async def structs(self, make: Callable[..., T], query: str, **parameters: Any) -> list[T]:
        """Returns `make(*row)` for each row. The columns have the order of the fields."""
        cursor = await self._run(query, parameters, args_row(make))
        return await cursor.fetchall()

    async def one(self, make: Callable[..., T], query: str, **parameters: Any) -> T | None:
        cursor = await self._run(query, parameters, args_row(make))
        found: T | None = await cursor.fetchone()
        return found

    async def execute(self, query: str, **parameters: Any) -> int:
        """Executes a statement. Returns the number of rows that it wrote or found."""
        return (await self._run(query, parameters, tuple_row)).rowcount

    async def copy_rows(self, query: str, rows: Iterable[Sequence[Any]]) -> int:
        """Executes `COPY … FROM STDIN` in text format. Returns the number of rows.

        An Instant cannot be copied to a timestamptz: copy it to a bigint column, or send a JSON
        parameter with `execute` instead."""
        cursor = Cursor(self._connection)

        async def copied() -> None:
            async with cursor.copy(query.encode()) as copy:
                for row in rows:
                    await copy.write_row(row)

        await self._bounded(copied())
        return cursor.rowcount

    async def copy_bytes(self, query: str, data: bytes) -> int:
        """Executes `COPY … FROM STDIN (FORMAT binary)`. Returns the number of rows.

        An error of the format is a programming error and raises Rejected."""
        cursor = Cursor(self._connection)

        async def copied() -> None:
            async with cursor.copy(query.encode()) as copy:
                await copy.write(data)

        await self._bounded(copied())
        return cursor.rowcount

    def lock_rank(self, rank: LockRank, what: str) -> None:
        """Records the rank of a lock. Each `lock_` function calls it.

        Raises AssertionError if ranks descend."""
        if rank < self._rank and not self._holds_all:
            held = LockRank(self._rank).name.lower()
            raise AssertionError(f"{self.name} locks {what} ({rank.name.lower()}) after {held}")
        self._rank = rank

    def holds_all(self) -> None:
        """Declares that all rows to lock from now on are already locked or new.

        A transaction that writes many objects locks all of them in order first, then writes each.
        """
        self._holds_all = True

    @asynccontextmanager
    async def undone(self) -> AsyncIterator[None]:
        """Rolls back the writes, locks and lock ranks of the block at its end.

        If the block raises, the transaction can only be rolled back."""
        rank, holds_all = self._rank, self._holds_all
        await self.execute("savepoint undone")
        yield
        await self.execute("rollback to savepoint undone")
        await self.execute("release savepoint undone")
        self._rank, self._holds_all = rank, holds_all

    @asynccontextmanager
    async def savepoint(self) -> AsyncIterator[None]:
        """Rolls back the block if it raises Rejected, so that the transaction can go on."""
        rank, holds_all = self._rank, self._holds_all
        await self.execute("savepoint attempt")
        failure: Rejected | None = None
        try:
            yield
        except Rejected as error:
            failure = error
        if failure is not None:
            await self.execute("rollback to savepoint attempt")
            self._rank, self._holds_all = rank, holds_all
        await self.execute("release savepoint attempt")
        if failure is not None:
            raise failure

    async def _run(self, query: str, parameters: dict[str, Any], row_factory: Any) -> Cursor:
        statement = _statement(query)
        if parameters.keys() != statement.named:
            raise TypeError(_mismatch(statement, parameters))
        if self._single is not None:
            if not self._single:
                raise RuntimeError(f"{self.name}: a second statement outside a transaction")
            self._single = False
        cursor = Cursor(self._connection, row_factory=row_factory)
        values = [parameters[name] for name in statement.order]
        await self._bounded(cursor.execute(statement.text, values))
        return cursor

    async def _bounded(self, work: Coroutine[Any, Any, object]) -> None:
        try:
            with trio.move_on_after(self._patience) as bound:
                await work
        except psycopg.Error as error:
            raise self._renamed(error) from error
        except UnicodeEncodeError as error:
            # psycopg raises it for a parameter before it sends the statement.
            raise Rejected(f"not UTF-8: {error}") from error
        if bound.cancelled_caught:
            self._connection.discard()
            raise self._away(f"no answer within {self._patience:g} s")

    def _renamed(self, error: psycopg.Error) -> Exception:
        if must_leave(error):
            self._connection.discard()
        known = renamed(error, lost=self._connection.closed)
        if type(known) is Unavailable and self._connection.closed:
            return self._away(str(known))
        return known

    def _away(self, cause: str) -> Unavailable:
        message = f"{self.name}: {cause}"
        return OutcomeUnknown(message) if self._single is not None else Unavailable(message)


def json_of(value: object) -> str:
    """Returns a value as a JSON parameter. Raises Rejected if a text in it is not UTF-8."""
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError as error:
        raise Rejected(f"not UTF-8: {error}") from error


class _Statement(NamedTuple):
    text: bytes
    order: tuple[str, ...]
    named: frozenset[str]


_PERCENT = re.compile(r"%(?:\((\w+)\)s|(%)|)")


# The statements are constants, except the few that contain the name of a partition.
@lru_cache(maxsize=2048)
def _statement(query: str) -> _Statement:
    """Replaces `%(name)s` by $1, $2 and so on. Cached, since psycopg caches only 128 of them."""
    order: list[str] = []

    def replaced(found: re.Match[str]) -> str:
        name, percent = found.groups()
        if percent:
            return "%"
        if not name:
            raise TypeError(f"write %% for a percent sign, at {query[found.start() :][:40]!r}")
        if name not in order:
            order.append(name)
        return f"${order.index(name) + 1}"

    text = _PERCENT.sub(replaced, query)
    return _Statement(text.encode(), tuple(order), frozenset(order))


def _mismatch(statement: _Statement, parameters: dict[str, Any]) -> str:
    missing = sorted(statement.named - parameters.keys())
    surplus = sorted(parameters.keys() - statement.named)
    faults = [
        f"{word} {', '.join(names)}"
        for word, names in (("missing", missing), ("surplus", surplus))
        if names
    ]
    first = " ".join(statement.text.decode().split())[:60]
    return f"{'; '.join(faults)} in {first!r}"
