"""One asyncio event loop in one thread, for a library that requires asyncio.

The first call starts the thread, which runs for the life of the process. It is a daemon thread: all
its work belongs to a run, and a cancelled run cancels its work. Therefore the process can exit
without stopping it. The thread takes no permit of the thread limiter, because the number of runs
does not change its count.

The CPU of the thread is charged to the run that uses it. A run whose callbacks wait for those of
other runs is held up by this process and not by its target.
"""

import asyncio
import select
import selectors
import socket
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from functools import partial
from time import perf_counter_ns, thread_time_ns
from typing import Any, Final, ParamSpec, TypeVar, TypeVarTuple

import trio

from ..check.cpu_meter import CpuMeter, current_meter
from ..check.failure import LocalFailure
from ..check.result import UnknownReason

# Grace period in which cancelled work closes its socket. Afterwards the caller stops waiting.
GOODBYE_SECONDS = 0.1
# CPU that a run may use before its meter is told.
REPORT_NS: Final = 5_000_000
# A call of the selector that takes longer has waited.
WAIT_US: Final = 1_000

P = ParamSpec("P")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_loops: list["_MeteredLoop"] = []
_starting = threading.Lock()


class _Selector(selectors.DefaultSelector):
    """Selector that knows since when the callbacks of the current pass of the loop may be due."""

    def __init__(self) -> None:
        super().__init__()
        self.returned_us = self.due_since_us = _now_us()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        called_us = _now_us()
        ready = super().select(timeout)
        returned_us = _now_us()
        # What ends a wait was not due before. Without a wait, it may have been due since the last
        # return.
        has_waited = returned_us - called_us >= WAIT_US
        self.due_since_us = returned_us if has_waited else self.returned_us
        self.returned_us = returned_us
        return ready


class _Account:
    """CPU and delays of one run on the thread.

    A delay is the time for which a callback of the run was due while the loop made other ones. The
    silence of the target is none. `settle` is called in the Trio thread, all else in this one.
    """

    def __init__(
        self, meter: CpuMeter | None, token: trio.lowlevel.TrioToken, selector: _Selector
    ) -> None:
        self._meter = meter
        self._token = token
        self._selector = selector
        self._unreported_ns = 0
        self._held_up_us = 0
        # End of the last callback of this run; its start in the Trio thread before.
        self._seen_us = _now_us()

    def begin(self) -> None:
        self._wait_since(self._seen_us)

    def measured(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        self._wait_since(self._selector.due_since_us)
        began_ns = thread_time_ns()
        try:
            return call(*args, **kwargs)
        finally:
            self._seen_us = _now_us()
            self._add(thread_time_ns() - began_ns)

    def _wait_since(self, due_us: int) -> None:
        self._held_up_us += max(0, _now_us() - max(due_us, self._seen_us))

    def _add(self, ns: int) -> None:
        self._unreported_ns += ns
        if self._unreported_ns >= REPORT_NS and self._meter is not None:
            spent_ns, self._unreported_ns = self._unreported_ns, 0
            with suppress(trio.RunFinishedError):
                self._token.run_sync_soon(self._meter.spend, spent_ns)

    def settle(self, *, is_due: bool) -> None:
        """Charges the rest, and records the delays. `is_due` states that the target has sent data
        that the loop has not read.
        """
        if self._meter is None:
            return
        if is_due:
            self._wait_since(self._selector.returned_us)
        self._meter.held_up_us += self._held_up_us
        self._meter.spend(self._unreported_ns)
        self._unreported_ns = 0


_account: ContextVar[_Account | None] = ContextVar("account", default=None)


def charged(call: Callable[P, T]) -> Callable[P, T]:
    """Returns `call` with its CPU charged to the current run.

    For callbacks of the selector, such as `data_received`, which do not pass `call_soon`.
    """
    account = _account.get()
    return call if account is None else partial(account.measured, call)


class _MeteredLoop(asyncio.SelectorEventLoop):
    """Loop that charges the steps of tasks and the calls of `call_soon`."""

    def __init__(self) -> None:
        try:
            self.selector = _Selector()
            super().__init__(self.selector)
        except BaseException:
            # A loop without its descriptors would raise when it is collected.
            self._closed = True
            raise

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        context = context or copy_context()
        account = context.get(_account)
        if account is None:
            return super().call_soon(callback, *args, context=context)
        return super().call_soon(account.measured, callback, *args, context=context)


async def on_asyncio(
    sock: socket.socket, work: Callable[[socket.socket], Coroutine[Any, Any, T]]
) -> T:
    """Runs `work` on the asyncio loop and returns its result or raises its exception.

    The socket is closed on return. On cancellation the socket is shut down. This ends every wait of
    `work`, and the library cleans up as after a lost connection.
    """
    try:
        loop = _loop()
    except BaseException:
        sock.close()
        raise
    token = trio.lowlevel.current_trio_token()
    account = _Account(current_meter(), token, loop.selector)
    ended = trio.Event()
    tasks: list[asyncio.Task[T]] = []

    def begin() -> None:
        account.begin()
        _account.set(account)
        tasks.append(loop.create_task(work(sock)))
        tasks[0].add_done_callback(after)

    def after(task: asyncio.Task[T]) -> None:
        # Retrieve the exception. Otherwise asyncio logs it as never retrieved after a cancellation.
        if not task.cancelled():
            task.exception()
        # Run after the close of an aborted transport, which is already in the queue of the loop.
        loop.call_soon(tell)

    def tell() -> None:
        sock.close()
        with suppress(trio.RunFinishedError):
            token.run_sync_soon(ended.set)

    def shut_down() -> None:
        with suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)

    loop.call_soon_threadsafe(begin)
    try:
        await ended.wait()
    finally:
        is_due = not ended.is_set() and _has_data(sock)
        if not ended.is_set():
            loop.call_soon_threadsafe(shut_down)
            with trio.move_on_after(GOODBYE_SECONDS, shield=True):
                await ended.wait()
        account.settle(is_due=is_due)
    return tasks[0].result()


def _has_data(sock: socket.socket) -> bool:
    """Returns whether the target has sent something that was not read, such as the end."""
    poll = select.poll()
    try:
        poll.register(sock, select.POLLIN)
    except ValueError:
        # The loop has closed it meanwhile.
        return False
    return bool(poll.poll(0))


def _now_us() -> int:
    return perf_counter_ns() // 1_000


def _loop() -> _MeteredLoop:
    """Returns the loop, and starts its thread on the first call.

    Raises: `LocalFailure` if this host has no thread or no descriptors for it.
    """
    with _starting:
        if not _loops:
            started: Future[_MeteredLoop] = Future()
            thread = threading.Thread(target=_serve, args=(started,), name="asyncio", daemon=True)
            try:
                thread.start()
                _loops.append(started.result())
            except (OSError, RuntimeError) as error:
                raise LocalFailure(UnknownReason.LOCAL_RESOURCES) from error
        return _loops[0]


def _serve(started: "Future[_MeteredLoop]") -> None:
    try:
        loop = _MeteredLoop()
    except Exception as error:
        # Without this, the thread that waits for the future would wait without end.
        started.set_exception(error)
        return
    # One thread serves the blocking calls of libraries. The default is a pool sized by the cores.
    loop.set_default_executor(ThreadPoolExecutor(1, thread_name_prefix="asyncio"))
    started.set_result(loop)
    loop.run_forever()
