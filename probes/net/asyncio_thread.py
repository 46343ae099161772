"""One asyncio event loop in one thread, for a library that requires asyncio.

The first call starts the thread, which runs for the life of the process. It is a daemon thread: all
its work belongs to a run, and a cancelled run cancels its work. Therefore the process can exit
without stopping it. The thread takes no permit of the thread limiter, because the number of runs
does not change its count.

The CPU of the thread is charged to the run that uses it. While the loop is late, its runs are held
up by this process and not by their targets.
"""

import asyncio
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
from ..check.loop_lag import NOTED_US, TICK_SECONDS
from ..check.result import UnknownReason

# Grace period in which cancelled work closes its socket. Afterwards the caller stops waiting.
GOODBYE_SECONDS = 0.1
# CPU that a run may use before its meter is told.
REPORT_NS: Final = 5_000_000

P = ParamSpec("P")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_loops: list["_MeteredLoop"] = []
_starting = threading.Lock()


class _Account:
    """CPU of one run on the thread. `settle` is called in the Trio thread, all else in this one."""

    def __init__(self, meter: CpuMeter | None, token: trio.lowlevel.TrioToken) -> None:
        self._meter = meter
        self._token = token
        self._used_ns = 0
        self._unreported_ns = 0

    def add(self, ns: int) -> None:
        self._used_ns += ns
        self._unreported_ns += ns
        if self._unreported_ns >= REPORT_NS and self._meter is not None:
            spent_ns, self._unreported_ns = self._unreported_ns, 0
            with suppress(trio.RunFinishedError):
                self._token.run_sync_soon(self._meter.spend, spent_ns)

    def settle(self, late_us: int) -> None:
        """Charges the rest, and records the delay of the loop by others than this run."""
        if self._meter is not None:
            self._meter.held_up_us += max(0, late_us - self._used_ns // 1_000)
            self._meter.spend(self._unreported_ns)
            self._unreported_ns = 0


_account: ContextVar[_Account | None] = ContextVar("account", default=None)


def charged(call: Callable[P, T]) -> Callable[P, T]:
    """Returns `call` with its CPU charged to the current run.

    For callbacks of the selector, such as `data_received`, which do not pass `call_soon`.
    """
    account = _account.get()
    return call if account is None else partial(_measured, account, call)


def _measured(account: _Account, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    began_ns = thread_time_ns()
    try:
        return call(*args, **kwargs)
    finally:
        account.add(thread_time_ns() - began_ns)


class _MeteredLoop(asyncio.SelectorEventLoop):
    """Loop that charges the steps of tasks and the calls of `call_soon`, and that knows by how much
    it is late.
    """

    def __init__(self) -> None:
        try:
            super().__init__()
        except BaseException:
            # A loop without its descriptors would raise when it is collected.
            self._closed = True
            raise
        self._runs = 0
        self._late_us = 0
        # None while no run is watched.
        self._next_tick_us: int | None = None

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        context = context or copy_context()
        account = context.get(_account)
        if account is None:
            return super().call_soon(callback, *args, context=context)
        return super().call_soon(_measured, account, callback, *args, context=context)

    def begin_run(self) -> None:
        self._runs += 1
        if self._next_tick_us is None:
            self._plan_tick()

    def end_run(self) -> None:
        self._runs -= 1

    def late_us(self) -> int:
        """Returns the sum of the delays of the loop while it had runs. Any thread may call it."""
        return self._late_us + self._delay_us(self._next_tick_us)

    @staticmethod
    def _delay_us(tick_us: int | None) -> int:
        late_us = 0 if tick_us is None else perf_counter_ns() // 1_000 - tick_us
        return late_us if late_us >= NOTED_US else 0

    def _plan_tick(self) -> None:
        self._next_tick_us = perf_counter_ns() // 1_000 + int(TICK_SECONDS * 1_000_000)
        self.call_later(TICK_SECONDS, self._tick)

    def _tick(self) -> None:
        self._late_us += self._delay_us(self._next_tick_us)
        self._next_tick_us = None
        if self._runs:
            self._plan_tick()


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
    account = _Account(current_meter(), token)
    late_us = loop.late_us()
    ended = trio.Event()
    tasks: list[asyncio.Task[T]] = []

    def begin() -> None:
        loop.begin_run()
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
        loop.end_run()
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
        if not ended.is_set():
            loop.call_soon_threadsafe(shut_down)
            with trio.move_on_after(GOODBYE_SECONDS, shield=True):
                await ended.wait()
        account.settle(loop.late_us() - late_us)
    return tasks[0].result()


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
