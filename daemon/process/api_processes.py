"""Further processes of role api on the listening socket of this process.

The kernel gives each connection to one of the processes. Each has limits of requests and of
connections, rate limits and caches of its own. A process that ends is started again. A process that
stops beating is killed and started again: it beats as for systemd, on a socket of this process. All
end with this process, also if it is killed: each watches a pipe from it.
"""

import logging
import math
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

import msgspec
import trio

from ..config.config_schema import Settings
from ..runtime.supervisor import ChildTask

log = logging.getLogger("leadline.api_processes")

# Pause before a process is started again; it doubles up to the last value.
FIRST_PAUSE_SECONDS: Final = 1.0
LAST_PAUSE_SECONDS: Final = 30.0
# A process that has run for this time begins with the first pause again.
STEADY_SECONDS: Final = 60.0
# Longest time between two beats. A process beats twice as often, while none of its loops is stale.
WATCHDOG_SECONDS: Final = 60.0
# Largest message of a process to its service manager.
_MESSAGE_MOST: Final = 4_096
_MODULE: Final = "leadline.daemon.process.api_process_main"
# Only this process reports to systemd.
_OF_SYSTEMD: Final = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")


@dataclass(slots=True)
class ApiProcesses:
    """`settings` are those of the further processes, `listening` is a socket of their own."""

    settings: Settings
    count: int
    listening: socket.socket
    watchdog_seconds: float = WATCHDOG_SECONDS
    _stopping: trio.Event = field(default_factory=trio.Event)
    _running: set[trio.Process] = field(default_factory=set)

    async def run(self, task: ChildTask) -> None:
        """Runs the processes until `stop`, and then until they have ended."""
        task.started()
        async with trio.open_nursery() as nursery:
            for _ in range(self.count):
                nursery.start_soon(self._keep)
        self.listening.close()

    def stop(self) -> None:
        """Asks the processes to stop; `run` returns when they have ended."""
        self._stopping.set()
        for process in self._running:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)

    async def _keep(self) -> None:
        pause = FIRST_PAUSE_SECONDS
        while not self._stopping.is_set():
            began = trio.current_time()
            status = await self._run_one()
            if self._stopping.is_set():
                return
            log.error("api process ended", extra={"status": status})
            if trio.current_time() - began >= STEADY_SECONDS:
                pause = FIRST_PAUSE_SECONDS
            with trio.move_on_after(pause):
                await self._stopping.wait()
            pause = min(2 * pause, LAST_PAUSE_SECONDS)

    async def _run_one(self) -> int | str:
        """Returns the exit status of a process, or the reason why it could not be started."""
        number = self.listening.fileno()
        try:
            beats = _beats()
        except OSError as error:
            return error.strerror or str(error)
        try:
            process = await trio.lowlevel.open_process(
                [sys.executable, "-m", _MODULE, str(number)],
                stdin=subprocess.PIPE,
                pass_fds=(number,),
                env=self._environment(beats),
                start_new_session=True,
            )
        except OSError as error:
            beats.close()
            return error.strerror or str(error)
        self._running.add(process)
        assert process.stdin is not None, "it is a pipe"
        try:
            # The settings contain keys, so they are neither an argument nor a variable.
            with suppress(trio.BrokenResourceError):
                await process.stdin.send_all(msgspec.json.encode(self.settings) + b"\n")
            if self._stopping.is_set():
                process.terminate()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._watch, process, beats)
                status = await process.wait()
                nursery.cancel_scope.cancel()
            return status
        finally:
            beats.close()
            # Cancelled at the end of the stop phase: the process is killed.
            with trio.CancelScope(shield=True):
                if process.returncode is None:
                    process.kill()
                    await process.wait()
                await process.stdin.aclose()
            self._running.discard(process)

    def _environment(self, beats: trio.socket.SocketType) -> dict[str, str]:
        """Returns the variables of a process, whose service manager is this process."""
        own = {k: v for k, v in os.environ.items() if k not in _OF_SYSTEMD}
        address = beats.getsockname().decode()
        own["NOTIFY_SOCKET"] = address.replace("\0", "@", 1)
        own["WATCHDOG_USEC"] = str(round(self.watchdog_seconds * 1_000_000))
        return own

    async def _watch(self, process: trio.Process, beats: trio.socket.SocketType) -> None:
        """Kills the process if it stops beating. It may wait for its database before the first.

        It takes two silent periods: the first may be a pause of the whole host, after which this
        process continues before the other one can beat.
        """
        has_beaten = False
        silent = 0
        while silent < 2:
            with trio.move_on_after(self.watchdog_seconds if has_beaten else math.inf) as silence:
                said = await beats.recv(_MESSAGE_MOST)
                has_beaten = has_beaten or b"WATCHDOG=1" in said.split(b"\n")
            silent = silent + 1 if silence.cancelled_caught else 0
        log.error("api process stopped beating", extra={"pid": process.pid})
        process.kill()


def _beats() -> trio.socket.SocketType:
    """Returns a socket with an abstract address that the kernel chose."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    made.bind("")
    return trio.socket.from_stdlib_socket(made)
