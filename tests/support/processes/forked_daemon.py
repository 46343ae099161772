"""Starts a daemon by a fork of a process that has already imported the product.

The import takes 1.2 s of CPU, which is more than the rest of a start. `LEADLINE_TEST_FORK=0` starts
the real command instead, for coverage and for a comparison.
"""

import os
import signal
import subprocess
import sys
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Final

# A benchmark, which pytest does not run, measures the real start.
IS_ON: Final = (
    "PYTEST_VERSION" in os.environ
    and os.environ.get("LEADLINE_TEST_FORK") != "0"
    and sys.platform == "linux"
)
_NETWORK_FILE: Final = "/proc/thread-self/ns/net"
_NETWORK: Final = os.readlink(_NETWORK_FILE) if IS_ON else ""
_CONTEXT: Final = ForkServerContext()
_IMPORTED: Final = [
    "leadline.daemon.process.daemon_main",
    "leadline.daemon.agent.agent_main",
    __name__,
]
_CONTEXT.set_forkserver_preload(_IMPORTED)


def can_fork() -> bool:
    """Returns False also in a network of the test, which the fork server would not share."""
    return IS_ON and os.readlink(_NETWORK_FILE) == _NETWORK


class ForkedDaemon:
    """The part of `subprocess.Popen` that tests use, for `leadline` in a forked process."""

    def __init__(self, arguments: list[str], environment: dict[str, str], log: Path) -> None:
        self._process: BaseProcess = _CONTEXT.Process(
            target=_run, args=(arguments, environment, str(log))
        )
        self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Returns the exit status, or the negated signal. Raises subprocess.TimeoutExpired."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("leadline", timeout or 0.0)
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _run(arguments: list[str], environment: dict[str, str], log: str) -> None:
    """Runs the command line in this process, as `Daemon.begin` runs it in a new one."""
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)
    os.chdir("/")
    os.environ.clear()
    os.environ.update(environment)
    # The fork server ignores it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    from leadline.daemon.cli import main

    main(arguments, prog_name="leadline")
