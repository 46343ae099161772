"""Connection pool. Lends one connection for one transaction, in the order of the requests.

Invariants:
- A waiting task gets a connection, or Unavailable with the cause, within `acquire_seconds`.
- A cancellation loses no connection. A connection is never lent twice, broken, or in a transaction.
- While the server is unavailable, one task retries to connect, with growing pauses.
- A task borrows at most one connection, since a second could wait for the first without end. The
  recorder, which needs a connection to make room for a result, checks `holding_connection`.
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
from .database_errors import Conflicted, LockTimeout, OutcomeUnknown, Rejected, must_leave, renamed
from .transaction import LockRank, Tx
from .trio_postgres import STATEMENT_SECONDS, Connection

__all__ = [
    "Conflicted",
    "Isolation",
    "LockRank",
    "LockTimeout",
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
# A connection is pinged after this idle time, and must answer within the second bound.
PING_AFTER_SECONDS: Final = 30.0
PING_SECONDS: Final = 2.0
# A connection is replaced after this, ± 25 %: limits its memory and moves it after a failover.
LIFETIME_SECONDS: Final = 1800.0
# Idle connections are closed after this, except one.
SPARE_SECONDS: Final = 60.0
# The pause between attempts to connect doubles from the first to the last. The last is a fraction
# of ACQUIRE_SECONDS, so that a task which waits during a failover gets a connection at its end.
FIRST_KNOCK_SECONDS: Final = 0.1
LAST_KNOCK_SECONDS: Final = 1.0
# Limit of a read-only transaction: a long snapshot keeps dead rows and makes updates expensive.
SNAPSHOT_SECONDS: Final = 5.0
# Pause before a conflicted transaction is repeated, times the attempt, with jitter.
CONFLICT_PAUSE_SECONDS: Final = 0.02

T = TypeVar("T")


class Isolation(StrEnum):
    REPEATABLE_READ = "REPEATABLE READ"
    SERIALIZABLE = "SERIALIZABLE"


class TransactionOutcome(StrEnum):
    """End of a transaction, as passed to `observe`."""

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
    """Counts for metrics and readiness. `cause` is the last connection error, else empty."""

    size: int
    open: int
    idle: int
    waiting: int
    cause: str


# Tasks that borrowed a connection. Not a context variable, which a child task would inherit.
_holding: set[trio.lowlevel.Task] = set()


def holding_connection() -> bool:
    """Returns whether the current task has borrowed a connection."""
    return trio.lowlevel.current_task() in _holding


@dataclass(eq=False, slots=True)
class _Lent:
    """Connection of the pool with its deadlines, in seconds of Trio's clock."""

    connection: Connection
    retire_at: float
    idle_since: float = 0.0


@dataclass(eq=False, slots=True)
class _Waiter:
    lent: _Lent | None = None
    given: trio.Event = field(default_factory=trio.Event)


class Pool:
    """Pool of connections. Created by `open_pool`."""

    def __init__(
        self,
        dsn: str,
        *,
        name: str,
        size: int,
        clock: Callable[[], Instant],
        observe: Observe,
        acquire_seconds: float,
        prepares: bool,
    ) -> None:
        self.name: Final = name
        self.size: Final = size
        self._dsn = dsn
        self._clock = clock
        self._observe = observe
        self._acquire_seconds = acquire_seconds
        self._prepares = prepares
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
        """Opens a transaction. Commits at the end of the block, rolls back if it raises.

        A read-only transaction as a whole is limited by the timeout or SNAPSHOT_SECONDS.

        Raises: Unavailable without a connection or if it was lost. Its subclasses: OutcomeUnknown
        if the response to COMMIT is missing, Conflicted on a serialization failure or a deadlock.
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
        """Opens a Tx for a single statement that commits itself, in one round trip.

        After a cancellation or OutcomeUnknown the statement can have been committed.
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
        """Runs `work` in a transaction. Repeats both after a conflict, up to `attempts` times."""
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
        """Converts psycopg's errors, and reports duration and outcome to `observe`."""
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
            raise RuntimeError("a task with a connection requested another one")
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
                # Idle connections go to tasks that already wait.
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
            # Cancelled during the hand-over: pass the connection to the next task.
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
        """Returns whether a connection works, with a ping if it was idle. Closes it otherwise.

        `usable` detects a server that closed the connection: its socket is readable."""
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
        """Returns a connection to the pool. The task that waits longest gets it."""
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
        """Opens connections for waiting tasks, one at a time, and closes spare connections."""
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
        if not self._prepares:
            connection.prepare_threshold = None
        self._put(_Lent(connection, trio.current_time() + _jittered(LIFETIME_SECONDS)))
        return True

    def _close_spare(self) -> None:
        # The leftmost connection has the longest idle time.
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
    prepares: bool = True,
) -> AsyncIterator[Pool]:
    """Opens a pool of at most `size` connections, which are opened on demand.

    Args:
        clock: gives `now` of each transaction.
        observe: called at the end of each transaction with name, seconds and outcome. The seconds
            exclude the wait for a connection.
        prepares: False behind a pooler, which gives each transaction another session.
    """
    pool = Pool(
        dsn,
        name=name,
        size=size,
        clock=clock,
        observe=observe,
        acquire_seconds=acquire_seconds,
        prepares=prepares,
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
    """Returns the duration ± 25 %, so that processes that started together diverge."""
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
