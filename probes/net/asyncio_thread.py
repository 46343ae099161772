"""One asyncio loop in one thread, for a library that knows no other: its work ends when ours does.

The thread is begun at the first need and stays for the life of the process: a daemon, since all
that it does belongs to a run, which takes its work back when it is cancelled. So nothing is lost
when the process ends without asking it. It holds no permit: it is one, however many runs there are.
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

# How long work that was taken back may take to let go of its socket before we stop watching.
GOODBYE_SECONDS = 0.1

T = TypeVar("T")

_loops: list[asyncio.AbstractEventLoop] = []
_starting = threading.Lock()


async def on_asyncio(
    sock: socket.socket, work: Callable[[socket.socket], Coroutine[Any, Any, T]]
) -> T:
    """What `work` returns or raises; the socket is closed by then. Cancelled, it is shut down: all
    that the work waits for ends with it, and the library tidies up as it does after any loss.
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
        # Asked for here, so that asyncio does not report as lost what nobody waits for any more.
        if not task.cancelled():
            task.exception()
        # Behind the end of a transport that was aborted, which is in the loop's queue by now.
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
    """`LocalFailure` where this host has no thread or no descriptors for one."""
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
        # Told, or whoever waits for it would wait for ever.
        started.set_exception(error)
        return
    # What libraries do aside; by default it would be a thread for each of several cores.
    loop.set_default_executor(ThreadPoolExecutor(1, thread_name_prefix="asyncio"))
    started.set_result(loop)
    loop.run_forever()
