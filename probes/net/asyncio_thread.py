"""One asyncio event loop in one thread, for a library that requires asyncio.

The first call starts the thread, which runs for the life of the process. It is a daemon thread: all
its work belongs to a run, and a cancelled run cancels its work. Therefore the process can exit
without stopping it. The thread takes no permit of the thread limiter, because the number of runs
does not change its count.
"""

import asyncio
import socket
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

import trio

from ..check.failure import LocalFailure
from ..check.result import UnknownReason

# Grace period in which cancelled work closes its socket. Afterwards the caller stops waiting.
GOODBYE_SECONDS = 0.1

T = TypeVar("T")

_loops: list[asyncio.AbstractEventLoop] = []
_starting = threading.Lock()


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
    ended = trio.Event()
    tasks: list[asyncio.Task[T]] = []

    def begin() -> None:
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
        if not ended.is_set():
            loop.call_soon_threadsafe(shut_down)
            with trio.move_on_after(GOODBYE_SECONDS, shield=True):
                await ended.wait()
    return tasks[0].result()


def _loop() -> asyncio.AbstractEventLoop:
    """Returns the loop, and starts its thread on the first call.

    Raises: `LocalFailure` if this host has no thread or no descriptors for it.
    """
    with _starting:
        if not _loops:
            started: Future[asyncio.AbstractEventLoop] = Future()
            thread = threading.Thread(target=_serve, args=(started,), name="asyncio", daemon=True)
            try:
                thread.start()
                _loops.append(started.result())
            except (OSError, RuntimeError) as error:
                raise LocalFailure(UnknownReason.LOCAL_RESOURCES) from error
        return _loops[0]


def _serve(started: "Future[asyncio.AbstractEventLoop]") -> None:
    try:
        loop = asyncio.new_event_loop()
    except Exception as error:
        # Without this, the thread that waits for the future would wait without end.
        started.set_exception(error)
        return
    # One thread serves the blocking calls of libraries. The default is a pool sized by the cores.
    loop.set_default_executor(ThreadPoolExecutor(1, thread_name_prefix="asyncio"))
    started.set_result(loop)
    loop.run_forever()
