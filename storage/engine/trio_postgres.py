"""PostgreSQL connection for Trio, without threads and without asyncio.

psycopg implements the protocol as generators that yield what they wait for. This module waits for
them in Trio and handles cancellation. It uses private names of psycopg: therefore the pin on 3.3,
and tests that an upgrade must pass.

Invariants:
- A cancelled statement is also cancelled on the server. Afterwards the connection is either usable
  or closed.
- The end of a transaction, pipeline or COPY is shielded from cancellation, and bounded in time.
- One task uses a connection at a time. A second one gets an error and does not wait.
"""

import select
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from math import inf
from types import TracebackType
from typing import Any, Final, NoReturn, TypeVar

import psycopg
import trio
from psycopg import errors, generators, pq
from psycopg._pipeline_async import AsyncPipeline
from psycopg.abc import Buffer, PQGen, PQGenConn
from psycopg.copy import AsyncCopy
from psycopg.waiting import Ready, Wait

from .database_errors import OutcomeUnknown
from .value_types import TYPES

# Bound of a cancellation and of the end of a transaction, pipeline or COPY. Then the connection is
# closed.
END_SECONDS: Final = 5
# Default statement timeout. PostgreSQL cancels the statement.
STATEMENT_SECONDS: Final = 15
# Steps without waiting after which other tasks are scheduled.
BUSY_STEPS: Final = 16

_BAD = pq.ConnStatus.BAD
_ACTIVE = pq.TransactionStatus.ACTIVE
_UNKNOWN = pq.TransactionStatus.UNKNOWN
_IDLE = pq.TransactionStatus.IDLE
_INTRANS = pq.TransactionStatus.INTRANS
_INERROR = pq.TransactionStatus.INERROR
_POLL_MASK: Final = {
    Wait.R: select.POLLIN,
    Wait.W: select.POLLOUT,
    Wait.RW: select.POLLIN | select.POLLOUT,
}

T = TypeVar("T")


class Connection(psycopg.AsyncConnection[tuple[Any, ...]]):
    """psycopg connection that waits in Trio. Created by `connect`; autocommit, binary results.

    Raises the errors of psycopg, which the caller converts with `renamed`.
    """

    _pipeline: AsyncPipeline | None

    def __init__(self, pgconn: pq.abc.PGconn) -> None:
        super().__init__(pgconn)
        # Not a trio.Lock: a garbage-collected generator releases it in another task.
        self.lock = _Turn()  # type: ignore[assignment]
        self.cursor_factory = Cursor
        self._autocommit = True
        self._adapters = psycopg.adapt.AdaptersMap(TYPES.adapters)
        self._fd = pgconn.socket
        self._poller = select.poll()
        self._steps = 0
        self._ending = False

    @classmethod
    async def connect(cls, *_: Any, **__: Any) -> NoReturn:
        """Raises NotImplementedError: the method of psycopg needs asyncio."""
        raise NotImplementedError("use storage.engine.connect.connect")

    @property
    def returnable(self) -> bool:
        """Whether the connection is idle, outside a transaction and a pipeline."""
        return self.pgconn.transaction_status == _IDLE and self._pipeline is None

    @property
    def usable(self) -> bool:
        """Whether it is returnable and has no unread data from the server, such as EOF."""
        return self.returnable and not self._poll(Wait.R)

    def discard(self) -> None:
        """Closes immediately. A task that waits on the socket gets ClosedResourceError."""
        if self.pgconn.status != _BAD:
            trio.lowlevel.notify_closing(self._fd)
        self._closed = True
        self.pgconn.finish()

    async def close(self) -> None:
        self.discard()
        await trio.lowlevel.cancel_shielded_checkpoint()

    def wait(
        self,
        gen: PQGen[T],
        interval: float = 0,  # noqa: ARG002  part of psycopg's signature
        timeout: float | None = None,
    ) -> Coroutine[Any, Any, T]:
        """Runs a generator of psycopg to its end, and returns its value.

        A cancellation cancels the statement on the server, then waits for the server's response.
        """
        return self._wait(gen, inf if timeout is None else timeout)

    async def _wait(self, gen: PQGen[T], seconds: float) -> T:
        try:
            await trio.lowlevel.checkpoint_if_cancelled()
            if seconds == inf:
                return await self._drive(gen)
            with trio.move_on_after(seconds):
                return await self._drive(gen)
        except trio.Cancelled:
            with trio.move_on_after(END_SECONDS, shield=True):
                await self._abandon(gen)
            if self.pgconn.transaction_status in (_ACTIVE, _UNKNOWN):
                self.discard()
            raise
        raise errors._WaitTimeout

    async def command(self, text: bytes) -> None:
        """Executes statements without parameters and rows (BEGIN, SET) in one round trip."""
        async with self.lock:
            await self.wait(self._command(text))

    @asynccontextmanager
    async def transaction(  # type: ignore[override]
        self, begin: bytes = b"BEGIN"
    ) -> AsyncIterator[None]:
        """Opens a transaction. Commits at the end of the block, rolls back if it raises.

        Raises OutcomeUnknown if COMMIT was sent and the response is missing.
        """
        try:
            with trio.move_on_after(END_SECONDS) as bound:
                await self.command(begin)
            if bound.cancelled_caught:
                self.discard()
                raise errors.OperationalError(f"no answer to BEGIN within {END_SECONDS:g} s")
            yield
            await trio.lowlevel.checkpoint_if_cancelled()
        except BaseException:
            with trio.move_on_after(END_SECONDS, shield=True):
                await self._roll_back()
            if not self.returnable:
                self.discard()
            raise
        await self._commit()

    async def _commit(self) -> None:
        if self.pgconn.transaction_status == _INERROR:
            await self._roll_back()
            # COMMIT of a failed transaction rolls back and reports success.
            raise RuntimeError("a statement failed, its error was swallowed, nothing is committed")
        self._check_connection_ok()
        try:
            with self.bounded_end():
                await self.command(b"COMMIT")
        except psycopg.Error as error:
            if self.closed:
                raise OutcomeUnknown(f"no answer to COMMIT: {error}") from error
            raise

    async def _roll_back(self) -> None:
        if self.pgconn.transaction_status in (_INTRANS, _INERROR):
            with suppress(psycopg.Error):
                await self.command(b"ROLLBACK")

    @asynccontextmanager
    async def pipeline(self) -> AsyncIterator[AsyncPipeline]:
        """Sends statements without waiting for each response. The exit waits for all of them."""
        async with self._pipelining(no_lock=False) as pipeline:
            yield pipeline

    @asynccontextmanager
    async def _pipeline_nolock(self) -> AsyncIterator[AsyncPipeline]:
        async with self._pipelining(no_lock=True) as pipeline:
            yield pipeline

    @asynccontextmanager
    async def _pipelining(self, *, no_lock: bool) -> AsyncIterator[AsyncPipeline]:
        if self._pipeline is not None:
            raise errors.ProgrammingError("a pipeline within a pipeline")
        pipeline = self._pipeline = _Pipeline(self, _no_lock=no_lock)
        try:
            async with pipeline:
                yield pipeline
        finally:
            self._pipeline = None

    def _command(self, text: bytes) -> PQGen[None]:
        self._check_connection_ok()
        self.pgconn.send_query(text)
        for result in (yield from generators.execute(self.pgconn)):
            if result.status == pq.ExecStatus.FATAL_ERROR:
                raise errors.error_from_result(result, encoding=self.pgconn._encoding)

    async def _drive(self, gen: PQGen[T]) -> T:
        try:
            want = next(gen)
            while True:
                ready = self._poll(want)
                if not ready:
                    self._steps = 0
                    ready = await _ready(self._fd, want)
                elif (steps := self._steps) < BUSY_STEPS:
                    self._steps = steps + 1
                else:
                    self._steps = 0
                    await trio.lowlevel.checkpoint()
                want = gen.send(ready)
        except StopIteration as end:
            result: T = end.value
            return result

    def _poll(self, want: Wait | int) -> Ready | int:
        """Returns the readiness without waiting, which most writes and some reads have."""
        self._poller.register(self._fd, _POLL_MASK[want])  # type: ignore[index]
        found = self._poller.poll(0)
        if not found:
            return 0
        events = found[0][1]
        if events & ~(select.POLLIN | select.POLLOUT):
            return Ready.RW if want == Wait.RW else want  # libpq reads the error
        return (Ready.R if events & select.POLLIN else 0) | (
            Ready.W if events & select.POLLOUT else 0
        )

    async def _abandon(self, gen: PQGen[Any]) -> None:
        if self._ending or self.pgconn.transaction_status != _ACTIVE:
            return
        # The cancelled statement raises. `usable` then depends on the status of the connection.
        with suppress(psycopg.Error, trio.ClosedResourceError):
            await self._cancel_there()
            await self._drive(gen)

    def cancel_safe(self, *, timeout: float = END_SECONDS) -> Coroutine[Any, Any, None]:
        """Requests a cancellation. Returns after the server received the request."""
        return self._cancel_there(timeout)

    async def _cancel_there(self, seconds: float = END_SECONDS) -> None:
        if not self._should_cancel():
            return
        with trio.move_on_after(seconds) as scope:
            await drive_elsewhere(self._cancel_gen())
        if scope.cancelled_caught:
            raise errors.CancellationTimeout("cancellation timeout expired")

    @contextmanager
    def bounded_end(self) -> Iterator[None]:
        """Shields the end of a unit of work from cancellation for up to END_SECONDS."""
        with trio.CancelScope(shield=True, deadline=trio.current_time() + END_SECONDS) as scope:
            self._ending = True
            try:
                yield
            finally:
                self._ending = False
        if scope.cancelled_caught:
            self.discard()
            raise errors.OperationalError(f"no answer within {END_SECONDS:g} s")


class Cursor(psycopg.AsyncRawCursor[Any]):
    """Cursor for SQL with the parameters $1, $2 and so on, with binary results."""

    def __init__(self, connection: Connection, *, row_factory: Any = None) -> None:
        super().__init__(connection, row_factory=row_factory or connection.row_factory)
        self.format = pq.Format.BINARY

    @asynccontextmanager
    async def copy(  # type: ignore[override]
        self, statement: bytes
    ) -> AsyncIterator[AsyncCopy]:
        async with self._conn.lock:
            await self._conn.wait(self._start_copy_gen(statement))
            async with _Copy(self) as copy:
                yield copy
        self._select_current_result(0)


class _Copy(AsyncCopy):
    def __init__(self, cursor: Cursor) -> None:
        super().__init__(cursor)
        self._write = self._write_in_turn

    async def _write_in_turn(self, data: Buffer) -> None:
        """Yields to other tasks after each write, since psycopg encodes up to 32 KiB at a time."""
        await self.writer.write(data)
        await trio.lowlevel.checkpoint()

    async def finish(self, exc: BaseException | None) -> None:
        connection: Connection = self.connection  # type: ignore[assignment]
        active = self._pgconn.transaction_status == _ACTIVE
        if exc is None and active and self._direction == pq.ExecStatus.COPY_OUT:
            exc = GeneratorExit()  # the loop ended early, and the server still sends
        if exc is None:
            try:
                await super().finish(None)
            finally:
                # Cancelled between the last row and the end of COPY.
                if self._pgconn.transaction_status == _ACTIVE:
                    connection.discard()
            return
        with connection.bounded_end():
            await super().finish(exc)


class _Pipeline(AsyncPipeline):
    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        connection: Connection = self._conn  # type: ignore[assignment]
        with trio.move_on_after(END_SECONDS, shield=True), connection.bounded_end():
            await super().__aexit__(exc_type, exc_val, exc_tb)
        if exc_type is not None and issubclass(exc_type, trio.Cancelled):
            # The set of statements that the server has prepared is unknown now.
            connection.discard()


class _Turn:
    """Lock that raises if a second task uses the connection, which is a bug of the caller."""

    def __init__(self) -> None:
        self._taken = False

    async def __aenter__(self) -> None:
        if self._taken:
            raise RuntimeError("this connection is in use by another task or an open iteration")
        self._taken = True

    async def __aexit__(self, *_: object) -> None:
        self._taken = False


async def drive_elsewhere(gen: PQGenConn[T]) -> T:
    """Runs a generator that has its own socket: connecting, cancelling."""
    try:
        fd, want = next(gen)
        while True:
            fd, want = gen.send(await _ready(fd, want))
    except StopIteration as end:
        result: T = end.value
        return result


async def _ready(fd: int, want: Wait | int) -> Ready | int:
    if want == Wait.R:
        await trio.lowlevel.wait_readable(fd)
        return Ready.R
    if want == Wait.W:
        await trio.lowlevel.wait_writable(fd)
        return Ready.W
    ready = 0

    async def watch(wait: Callable[[int], Awaitable[None]], flag: Ready) -> None:
        nonlocal ready
        try:
            await wait(fd)
        except trio.ClosedResourceError:
            flag = Ready.RW  # libpq finds the socket closed, and raises
        ready |= flag
        nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch, trio.lowlevel.wait_readable, Ready.R)
        nursery.start_soon(watch, trio.lowlevel.wait_writable, Ready.W)
    return ready
