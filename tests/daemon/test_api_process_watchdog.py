"""Further API processes: one that stands still is killed and started again."""

import errno
import logging
import os
import socket
from pathlib import Path
from typing import Any

import pytest
import trio

from leadline.daemon.config.config_schema import Settings
from leadline.daemon.process import api_processes
from leadline.daemon.process.api_processes import ApiProcesses


class Started:
    """The task of a supervisor, as far as the processes use it."""

    def started(self) -> None:
        pass


class Messages(logging.Handler):
    """Log messages, and an event when the second process was killed."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []
        self.killed_twice = trio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())
        if self.said.count("api process stopped beating") == 2:
            self.killed_twice.set()


async def test_a_process_that_stands_still_is_replaced(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(api_processes, "_MODULE", "tests.support.processes.silent_process")
    monkeypatch.setattr(api_processes, "FIRST_PAUSE_SECONDS", 0.0)
    pids = tmp_path / "pids"
    monkeypatch.setenv("SILENT_PIDS", str(pids))
    # Those of the test's own service manager do not reach the process.
    monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()))
    messages = Messages()
    monkeypatch.setattr(api_processes.log, "handlers", [messages])
    with socket.create_server(("127.0.0.1", 0)) as listening:
        processes = ApiProcesses(Settings(), 1, listening, watchdog_seconds=0.2)
        async with trio.open_nursery() as nursery:
            supervised: Any = Started()
            nursery.start_soon(processes.run, supervised)
            await messages.killed_twice.wait()
            processes.stop()
    # The third may have been stopped before it wrote its id.
    ids = [int(line) for line in (await trio.Path(pids).read_text()).split()]
    assert len(set(ids)) == len(ids) >= 2
    assert set(messages.said) == {"api process stopped beating", "api process ended"}
    for pid in ids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


async def test_a_start_without_a_free_descriptor_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The reason is returned, and not raised: it would end the other processes."""

    def no_descriptor() -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(api_processes, "_beats", no_descriptor)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        processes = ApiProcesses(Settings(), 1, listening)
        assert await processes._run_one() == os.strerror(errno.EMFILE)
