"""A transaction as tables and views see it: SQL in, rows out, one reading of the clock, one name.

It keeps true: a statement is given exactly the parameters it names; locks are taken in the one
order that cannot deadlock; no psycopg error gets past it; a server that does not answer at all is
left after its statement's time-out and END_SECONDS.
"""

import re
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from enum import IntEnum
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeVar

import psycopg
import trio
from psycopg.rows import args_row, tuple_row

from ..core.instant import Instant
from ..core.refusal import Unavailable
from .database_errors import OutcomeUnknown, must_leave, renamed
from .trio_postgres import END_SECONDS, Connection, Cursor

T = TypeVar("T")


class LockRank(IntEnum):
    """The order in which rows are locked within a transaction."""

    ORGANIZATION = 1
    PROJECT = 2
    REGION = 3
    SERVICE = 4
    MONITOR = 5
    SECRET = 6
    POLICY = 7
    ROSTER = 8
    CHANNEL = 9
    SHARD = 10
    STATE = 11
    INCIDENT = 12
    PAGE = 13
    OUTBOX = 14
    CHANGE = 15
    SCHEDULE = 16


class Tx:
    """One open transaction, or one statement outside any (`Pool.statement`).

    SQL names its parameters `%(name)s` and writes a plain percent sign `%%`; they are passed by
    keyword, and TypeError is raised before anything is sent when one is missing or surplus. Raises
    Unavailable (or its kinds OutcomeUnknown, Conflicted) and Rejected.
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
        # None: any number of statements; True, False: one, and whether it is still to come.
        self._single: bool | None = single or None

    @property
    def now(self) -> Instant:
        """The one reading of the clock: all that this transaction writes is of this instant.

        Read when it is first asked for, so that who has waited for a lock is not of an earlier
        instant than who held it.
        """
        if self._now is None:
            self._now = self._clock()
        return self._now

    async def rows(self, query: str, **parameters: Any) -> list[tuple[Any, ...]]:
        cursor = await self._run(query, parameters, tuple_row)
        return await cursor.fetchall()

    async def row(self, query: str, **parameters: Any) -> tuple[Any, ...] | None:
        """The first row, or None when there is none."""
        cursor = await self._run(query, parameters, tuple_row)
        found: tuple[Any, ...] | None = await cursor.fetchone()
        return found

    async def value(self, query: str, **parameters: Any) -> Any:
        """The first column of the first row, or None when there is none."""
        found = await self.row(query, **parameters)
        return found[0] if found else None

    async def structs(self, make: Callable[..., T], query: str, **parameters: Any) -> list[T]:
        """A `make(*row)` for each row: a msgspec Struct or dataclass, columns in its order."""
        cursor = await self._run(query, parameters, args_row(make))
        return await cursor.fetchall()

    async def one(self, make: Callable[..., T], query: str, **parameters: Any) -> T | None:
        cursor = await self._run(query, parameters, args_row(make))
        found: T | None = await cursor.fetchone()
        return found

    async def execute(self, query: str, **parameters: Any) -> int:
        """How many rows the statement wrote, or found."""
        return (await self._run(query, parameters, tuple_row)).rowcount

    async def copy_rows(self, query: str, rows: Iterable[Sequence[Any]]) -> int:
        """`COPY … FROM STDIN` in text format; the number of rows. Instants do not fit a
        timestamptz here: copy them to a bigint column, or send one JSON parameter instead."""
        cursor = Cursor(self._connection)

        async def copied() -> None:
            async with cursor.copy(query.encode()) as copy:
                for row in rows:
                    await copy.write_row(row)

        await self._bounded(copied())
        return cursor.rowcount

    def lock_rank(self, rank: LockRank, what: str) -> None:
        """Each `lock_` function states its rank; AssertionError when ranks descend."""
        if rank < self._rank and not self._holds_all:
            held = LockRank(self._rank).name.lower()
            raise AssertionError(f"{self.name} locks {what} ({rank.name.lower()}) after {held}")
        self._rank = rank

    def holds_all(self) -> None:
        """Says that all which will still be locked is held already, or new: whoever writes many
        things locks them first, in their order, and then writes them one after the other."""
        self._holds_all = True

    @asynccontextmanager
    async def undone(self) -> AsyncIterator[None]:
        """Undoes what the block writes and releases what it locks, also the ranks. If the block
        raises, the transaction can only end."""
        rank, holds_all = self._rank, self._holds_all
        await self.execute("savepoint undone")
        yield
        await self.execute("rollback to savepoint undone")
        await self.execute("release savepoint undone")
        self._rank, self._holds_all = rank, holds_all

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


class _Statement(NamedTuple):
    text: bytes
    order: tuple[str, ...]
    named: frozenset[str]


_PERCENT = re.compile(r"%(?:\((\w+)\)s|(%)|)")


# The statements are constants of the code, but for the few that name a partition.
@lru_cache(maxsize=2048)
def _statement(query: str) -> _Statement:
    """`%(name)s` becomes $1, $2 …; composed once, as psycopg keeps only the last 128."""
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
