"""A bounded number of connections, lent for one transaction at a time, first come first served.

It keeps true: whoever waits is served in order or told why not within a deadline; a connection is
never lost by a cancellation, never lent twice, and never lent broken or within a transaction; while
the server is away, one task knocks, ever more slowly, however many wait. A task holds one
connection at a time (a second could wait for the first for ever), and others can ask whether it
does: nobody awaits the recorder, a permit or a channel while holding one.
"""

import random
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import Final, TypeVar

import psycopg
import trio

from ..core.instant import Instant
from ..core.refusal import Refused, Unavailable
from .connect import connect
from .database_errors import Conflicted, OutcomeUnknown, Rejected, must_leave, renamed
from .transaction import LockRank, Tx
from .trio_postgres import STATEMENT_SECONDS, Connection

__all__ = [
    "Conflicted",
    "Isolation",
    "LockRank",
    "OutcomeUnknown",
    "Pool",
    "PoolCounts",
    "Rejected",
    "TransactionOutcome",
    "Tx",
    "holding_connection",
    "open_pool",
]

# How long a task waits for a connection: the bound of every request and loop.
ACQUIRE_SECONDS: Final = 5.0
# A connection is asked whether it is alive after having been idle so long, and given so long.
PING_AFTER_SECONDS: Final = 30.0
PING_SECONDS: Final = 2.0
# A connection is left after this, ± a quarter, so that failovers and memory are followed.
LIFETIME_SECONDS: Final = 1800.0
# What was not needed for so long is closed, but for one.
SPARE_SECONDS: Final = 300.0
# The pause between attempts to connect doubles from the first to the last. The last is a fraction
# of ACQUIRE_SECONDS, so that a task which waits during a failover gets a connection at its end.
FIRST_KNOCK_SECONDS: Final = 0.1
LAST_KNOCK_SECONDS: Final = 1.0
# A read-only transaction's snapshot: a longer one makes every update dear.
SNAPSHOT_SECONDS: Final = 5.0
# Before a conflicted transaction is tried again, times the attempt, jittered.
CONFLICT_PAUSE_SECONDS: Final = 0.02

T = TypeVar("T")


class Isolation(StrEnum):
    REPEATABLE_READ = "REPEATABLE READ"
    SERIALIZABLE = "SERIALIZABLE"


class TransactionOutcome(StrEnum):
    """How a transaction ended, as told to `observe`."""

    COMMITTED = "committed"
    REFUSED = "refused"
    CONFLICTED = "conflicted"
    UNAVAILABLE = "unavailable"
    UNKNOWN = "unknown"
    CANCELLED = "cancelled"
    FAILED = "failed"


Observe = Callable[[str, float, TransactionOutcome], None]


@dataclass(frozen=True, slots=True)
class PoolCounts:
    """For metrics and readiness; `cause` says why the last connection could not be made."""

    size: int
    open: int
    idle: int
    waiting: int
    cause: str


# Tasks that hold a connection. Not a context variable: a child task would inherit it.
_holding: set[trio.lowlevel.Task] = set()


def holding_connection() -> bool:
    """Whether the current task is inside a transaction."""
    return trio.lowlevel.current_task() in _holding


@dataclass(eq=False, slots=True)
class _Lent:
    """A connection of the pool, with what the pool knows of it."""

    connection: Connection
    retire_at: float
    idle_since: float = 0.0


@dataclass(eq=False, slots=True)
class _Waiter:
    lent: _Lent | None = None
    given: trio.Event = field(default_factory=trio.Event)


class Pool:
    """Made by `open_pool`."""

    def __init__(
        self,
        dsn: str,
        *,
        name: str,
        size: int,
        clock: Callable[[], Instant],
        observe: Observe,
        acquire_seconds: float,
    ) -> None:
        self.name: Final = name
        self.size: Final = size
        self._dsn = dsn
        self._clock = clock
        self._observe = observe
        self._acquire_seconds = acquire_seconds
        self._open = 0
        self._idle: deque[_Lent] = deque()
        self._waiting: deque[_Waiter] = deque()
        self._wanted = trio.Event()
        self._cause = ""
        self._closed = False

    def counts(self) -> PoolCounts:
        return PoolCounts(self.size, self._open, len(self._idle), len(self._waiting), self._cause)

    @asynccontextmanager
    async def transaction(
        self,
        name: str,
        *,
        read_only: bool = False,
        isolation: Isolation | None = None,
        statement_timeout_seconds: float | None = None,
    ) -> AsyncIterator[Tx]:
        """Commits when the block ends, rolls back when it raises or is cancelled.

        A read-only one is bounded as a whole, by SNAPSHOT_SECONDS or by the time-out given. Raises
        Unavailable when no connection is to be had or it was lost, OutcomeUnknown (a kind of it)
        when COMMIT was not answered, Conflicted (another) on a serialization failure or deadlock.
        """
        seconds = statement_timeout_seconds or (
            SNAPSHOT_SECONDS if read_only else STATEMENT_SECONDS
        )
        begin = _begin(read_only, isolation, statement_timeout_seconds)
        async with self._lend() as connection:
            with self._watched(name, connection):
                tx = Tx(connection, name, self._clock, seconds=seconds, single=False)
                with _bounded(name, seconds) if read_only else nullcontext():
                    async with connection.transaction(begin):
                        yield tx

    @asynccontextmanager
    async def statement(self, name: str) -> AsyncIterator[Tx]:
        """For one statement outside a transaction, which commits as it ends: one round trip.

        When it is cancelled or the connection is lost (OutcomeUnknown) it may have been done.
        """
        async with self._lend() as connection:
            with self._watched(name, connection):
                yield Tx(connection, name, self._clock, seconds=STATEMENT_SECONDS, single=True)

    async def transact(
        self,
        name: str,
        work: Callable[[Tx], Awaitable[T]],
        *,
        attempts: int = 3,
        read_only: bool = False,
        isolation: Isolation | None = None,
        statement_timeout_seconds: float | None = None,
    ) -> T:
        """Runs `work` in a transaction, again from the start after a conflict."""
        attempt = 1
        while True:
            try:
                async with self.transaction(
                    name,
                    read_only=read_only,
                    isolation=isolation,
                    statement_timeout_seconds=statement_timeout_seconds,
                ) as tx:
                    result = await work(tx)
            except Conflicted:
                if attempt == attempts:
                    raise
            else:
                return result
            await trio.sleep(_jittered(CONFLICT_PAUSE_SECONDS * attempt))
            attempt += 1

    @contextmanager
    def _watched(self, name: str, connection: Connection) -> Iterator[None]:
        """Renames what BEGIN and COMMIT raise, and tells how long it took and how it ended."""
        since = trio.current_time()
        outcome = TransactionOutcome.FAILED
        try:
            try:
                yield
                outcome = TransactionOutcome.COMMITTED
            except psycopg.Error as error:
                if must_leave(error):
                    connection.discard()
                raise renamed(error, lost=connection.closed) from error
        except BaseException as error:
            outcome = next((word for kind, word in _OUTCOMES if isinstance(error, kind)), outcome)
            raise
        finally:
            self._observe(name, trio.current_time() - since, outcome)

    @asynccontextmanager
    async def _lend(self) -> AsyncIterator[Connection]:
        task = trio.lowlevel.current_task()
        if task in _holding:
            raise RuntimeError("a task that holds a connection asks for another")
        lent = await self._take()
        _holding.add(task)
        try:
            yield lent.connection
        finally:
            _holding.discard(task)
            self._put(lent)

    async def _take(self) -> _Lent:
        await trio.lowlevel.checkpoint_if_cancelled()
        if self._idle and not self._waiting and self._is_fresh(self._idle[-1]):
            return self._idle.pop()
        with trio.move_on_after(self._acquire_seconds):
            while True:
                # An idle one is ours only if nobody came before us.
                lent = self._idle.pop() if self._idle and not self._waiting else await self._queue()
                if await self._is_well(lent):
                    return lent
        counts = self.counts()
        cause = self._cause or f"{counts.open} of {counts.size} in use, {counts.waiting} waiting"
        raise Unavailable(
            f"no connection of pool {self.name} within {self._acquire_seconds:g} s: {cause}"
        )

    async def _queue(self) -> _Lent:
        waiter = _Waiter()
        self._waiting.append(waiter)
        self._wanted.set()
        try:
            await waiter.given.wait()
        except BaseException:
            # Cancelled in the moment of the hand-over: what was given goes to the next.
            if waiter.lent is None:
                self._waiting.remove(waiter)
            else:
                self._put(waiter.lent)
            raise
        assert waiter.lent is not None
        return waiter.lent

    def _is_fresh(self, lent: _Lent) -> bool:
        idle_seconds = trio.current_time() - lent.idle_since
        return idle_seconds <= PING_AFTER_SECONDS and lent.connection.usable

    async def _is_well(self, lent: _Lent) -> bool:
        """Drops it when it is not. A server that went away has made the socket readable."""
        connection = lent.connection
        well = connection.usable
        if well and not self._is_fresh(lent):
            try:
                with trio.move_on_after(PING_SECONDS) as bound:
                    await connection.command(b"SELECT")
                well = not bound.cancelled_caught
            except psycopg.Error:
                well = False
            except BaseException:
                self._put(lent)
                raise
        if not well:
            self._drop(lent)
        return well

    def _put(self, lent: _Lent) -> None:
        """Takes a connection back and hands it to whoever has waited longest."""
        now = trio.current_time()
        if self._closed or now > lent.retire_at or not lent.connection.returnable:
            self._drop(lent)
            return
        lent.idle_since = now
        if self._waiting:
            waiter = self._waiting.popleft()
            waiter.lent = lent
            waiter.given.set()
        else:
            self._idle.append(lent)

    def _drop(self, lent: _Lent) -> None:
        lent.connection.discard()
        self._open -= 1
        self._wanted.set()

    async def _tend(self) -> None:
        """Makes the connections that are waited for, one after the other; closes spare ones."""
        pause = FIRST_KNOCK_SECONDS
        while True:
            while self._waiting and self._open < self.size:
                if await self._knock():
                    pause = FIRST_KNOCK_SECONDS
                else:
                    await trio.sleep(_jittered(pause))
                    pause = min(2 * pause, LAST_KNOCK_SECONDS)
            self._wanted = trio.Event()
            with trio.move_on_after(SPARE_SECONDS / 4):
                await self._wanted.wait()
            self._close_spare()

    async def _knock(self) -> bool:
        self._open += 1
        try:
            connection = await connect(self._dsn, name=f"leadline {self.name}")
        except Unavailable as error:
            self._open -= 1
            self._cause = str(error)
            return False
        except BaseException:
            self._open -= 1
            raise
        self._cause = ""
        self._put(_Lent(connection, trio.current_time() + _jittered(LIFETIME_SECONDS)))
        return True

    def _close_spare(self) -> None:
        # The one that was idle longest is at the left.
        limit = trio.current_time() - SPARE_SECONDS
        while len(self._idle) > 1 and self._idle[0].idle_since < limit:
            self._drop(self._idle.popleft())

    def _close(self) -> None:
        self._closed = True
        while self._idle:
            self._drop(self._idle.pop())


@asynccontextmanager
async def open_pool(
    dsn: str,
    *,
    name: str,
    size: int,
    clock: Callable[[], Instant],
    observe: Observe = lambda _name, _seconds, _outcome: None,
    acquire_seconds: float = ACQUIRE_SECONDS,
) -> AsyncIterator[Pool]:
    """A pool of at most `size` connections, made as they are needed.

    `clock` gives each transaction's `now`; `observe(name, seconds, outcome)` is told of each end,
    waiting for the connection not counted.
    """
    pool = Pool(
        dsn, name=name, size=size, clock=clock, observe=observe, acquire_seconds=acquire_seconds
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pool._tend)
        try:
            yield pool
        finally:
            pool._close()
            nursery.cancel_scope.cancel()


_OUTCOMES: Final[tuple[tuple[type[BaseException], TransactionOutcome], ...]] = (
    (OutcomeUnknown, TransactionOutcome.UNKNOWN),
    (Conflicted, TransactionOutcome.CONFLICTED),
    (Unavailable, TransactionOutcome.UNAVAILABLE),
    (Refused, TransactionOutcome.REFUSED),
    (trio.Cancelled, TransactionOutcome.CANCELLED),
)


@contextmanager
def _bounded(name: str, seconds: float) -> Iterator[None]:
    with trio.move_on_after(seconds) as bound:
        yield
    if bound.cancelled_caught:
        raise Unavailable(f"{name}: the snapshot was open for more than {seconds:g} s")


def _jittered(seconds: float) -> float:
    """± a quarter, so that processes that began together do not stay together."""
    return seconds * random.uniform(0.75, 1.25)  # noqa: S311


@cache
def _begin(read_only: bool, isolation: Isolation | None, timeout_seconds: float | None) -> bytes:
    words = ["BEGIN"]
    if isolation is not None:
        words.append(f"ISOLATION LEVEL {isolation}")
    if read_only:
        words.append("READ ONLY")
    text = " ".join(words)
    if timeout_seconds is not None:
        text += f"; SET LOCAL statement_timeout = {int(timeout_seconds * 1000)}"
    return text.encode()
