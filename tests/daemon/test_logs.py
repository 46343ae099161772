"""The log stays readable while the process has no free descriptor."""

import errno
import logging
from collections.abc import Iterator

import pytest
import trio
import trio.testing

from leadline.daemon.config import logs
from leadline.daemon.config.config_schema import Log


class FullListener(trio.abc.Listener[trio.SocketStream]):
    """No descriptor is free for a connection."""

    async def accept(self) -> trio.SocketStream:
        await trio.lowlevel.checkpoint()
        raise OSError(errno.EMFILE, "Too many open files")

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[logging.LogRecord]]:
    """Yields what the configured root logger writes."""
    root = logging.getLogger()
    before = root.handlers[:], root.level
    logs.configure(Log())
    written: list[logging.LogRecord] = []
    monkeypatch.setattr(root.handlers[0], "emit", written.append)
    yield written
    root.handlers[:], root.level = before
    logging.getLogger("trio.serve_listeners").filters.clear()


async def test_a_lack_of_descriptors_is_logged_once_and_without_a_traceback(
    lines: list[logging.LogRecord], autojump_clock: trio.testing.MockClock
) -> None:
    with trio.move_on_after(30):
        await trio.serve_listeners(trio.aclose_forcefully, [FullListener()])
    (line,) = lines
    assert "EMFILE" in line.getMessage()
    assert line.exc_info is None


def test_a_record_passes_again_after_a_minute() -> None:
    now = [0.0]
    limit = logs.FirstOfMinute(lambda: now[0])
    record = logging.makeLogRecord({})
    passed = []
    for second in range(150):
        now[0] = float(second)
        if limit.filter(record):
            passed.append(second)
    assert passed == [0, 60, 120]
