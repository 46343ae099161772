"""Start of a process: answers that it is not ready, and waits for its database."""

import logging
import socket
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import trio

from ...http.server.hypercorn_server import serve_not_ready
from ...http.wire.app_context import Readiness
from ...storage.core.refusal import Unavailable
from ...storage.engine.database_errors import UnusableDatabase
from ...storage.engine.embedded_postgres import AlreadyRunning
from ..runtime import limits
from ..runtime.sd_notify import notify
from ..runtime.supervisor import Child, ChildTask, RunChild, StopPhase

log = logging.getLogger("leadline.startup")

T = TypeVar("T")


class Startup:
    """Answers health requests and waits for the database until the process is ready.

    `listening` is the socket of the process, or None if it serves no HTTP. Without `waits`, an
    unavailable database is an error. A command of this host that uses the embedded store is always
    waited for, because it ends.
    """

    def __init__(
        self,
        listening: socket.socket | None,
        stopping: trio.Event,
        *,
        waits: bool,
        base_path: str = "",
    ) -> None:
        self._listening = listening
        self._stopping = stopping
        self._waits = waits
        self._base_path = base_path
        self._faults: tuple[str, ...] = ("starting",)
        self._over = trio.Event()
        self._closed = trio.Event()

    def server(self) -> RunChild | None:
        """Returns the child that answers on the socket until `end`; None without a socket."""
        listening = self._listening
        if listening is None:
            self._closed.set()
            return None

        async def serve(task: ChildTask) -> None:
            requests = limits.serving()
            await serve_not_ready(
                listening, self._readiness, requests, self._over, self._base_path, task
            )
            self._closed.set()
            # A child that returns counts as failed.
            await trio.sleep_forever()

        return serve

    async def end(self) -> None:
        """Stops answering and releases the socket to the server of the ready process."""
        self._over.set()
        await self._closed.wait()

    async def until_available(self, work: Callable[[], Awaitable[T]]) -> T | None:
        """Returns the result of `work`, which it retries while the database is unavailable.

        Returns None if the process is stopped first: then `work` is cancelled. Until it
        returns, it requests more start time from systemd.

        Raises: UnusableDatabase and all other errors of `work`, immediately.
        """
        result: T | None = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_cancel_at, self._stopping, nursery.cancel_scope)
            nursery.start_soon(_extend_start)
            result = await self._repeat(work)
            nursery.cancel_scope.cancel()
        return result

    def _readiness(self) -> Readiness:
        return Readiness(faults=self._faults)

    def _may_wait(self, error: Exception) -> bool:
        if isinstance(error, AlreadyRunning):
            return True
        return self._waits and not isinstance(error, UnusableDatabase)

    async def _repeat(self, work: Callable[[], Awaitable[T]]) -> T:
        began_at = trio.current_time()
        logged_at: float | None = None
        pause = limits.DATABASE_FIRST_PAUSE_SECONDS
        while True:
            try:
                result = await work()
            except (Unavailable, AlreadyRunning) as error:
                if not self._may_wait(error):
                    raise
                cause = str(error)
            else:
                break
            self._faults = ("database",)
            notify(f"STATUS=waiting for the database: {cause}")
            now = trio.current_time()
            if logged_at is None or now - logged_at >= limits.DATABASE_LOG_SECONDS:
                logged_at = now
                waited = round(now - began_at)
                log.warning(
                    "waiting for the database", extra={"cause": cause, "waited_seconds": waited}
                )
            await trio.sleep(pause)
            pause = min(2 * pause, limits.DATABASE_LAST_PAUSE_SECONDS)
        if logged_at is not None:
            self._faults = ("starting",)
            notify("STATUS=starting")
            waited = round(trio.current_time() - began_at)
            log.info("database available", extra={"waited_seconds": waited})
        return result


async def _cancel_at(stopping: trio.Event, scope: trio.CancelScope) -> None:
    await stopping.wait()
    scope.cancel()


async def _extend_start() -> None:
    """Extends TimeoutStartSec: each message grants START_EXTENSION_SECONDS from its receipt."""
    while True:
        notify(f"EXTEND_TIMEOUT_USEC={limits.START_EXTENSION_SECONDS * 1_000_000}")
        await trio.sleep(limits.START_EXTENSION_PAUSE_SECONDS)


NOT_READY: Final[Child[Startup]] = Child(
    "not_ready", StopPhase("not_ready"), bind=Startup.server, reports_start=True
)
