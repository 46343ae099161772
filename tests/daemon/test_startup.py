"""The wait for the database, with the clock of the test."""

import itertools
import logging
import math
from collections.abc import Awaitable, Callable

import pytest
import trio
from trio.testing import MockClock

from leadline.daemon.process.startup import Startup
from leadline.daemon.runtime import limits
from leadline.storage.core.refusal import Unavailable
from leadline.storage.engine.database_errors import OutcomeUnknown, UnusableDatabase


def startup(*, waits: bool = True) -> tuple[Startup, trio.Event]:
    stopping = trio.Event()
    return Startup(None, stopping, waits=waits), stopping


def failing_until(seconds: float, attempts: list[float]) -> Callable[[], Awaitable[str]]:
    async def work() -> str:
        attempts.append(trio.current_time())
        if trio.current_time() < seconds:
            raise Unavailable("cannot connect: refused")
        return "there"

    return work


async def test_it_logs_the_cause_once_a_minute(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    attempts: list[float] = []
    started = trio.current_time()
    caplog.set_level(logging.INFO, "leadline.startup")
    waiting, _ = startup()
    result = await waiting.until_available(failing_until(started + 3_590, attempts))
    assert result == "there"
    *warnings, last = [record.getMessage() for record in caplog.records]
    assert last == "database available"
    assert set(warnings) == {"waiting for the database"}
    # The attempts do not fall on the minute, so that a line comes up to one pause later.
    assert 3_600 / (60 + limits.DATABASE_LAST_PAUSE_SECONDS) <= len(warnings) <= 60
    pauses = [after - before for before, after in itertools.pairwise(attempts)]
    assert max(pauses) <= limits.DATABASE_LAST_PAUSE_SECONDS
    assert min(pauses) >= limits.DATABASE_FIRST_PAUSE_SECONDS


@pytest.mark.parametrize("failure", [UnusableDatabase("wrong password"), ValueError("ours")])
async def test_a_permanent_error_is_raised_immediately(failure: Exception) -> None:
    async def work() -> str:
        raise failure

    waiting, _ = startup()
    with pytest.RaisesGroup(type(failure)):
        await waiting.until_available(work)


async def test_an_embedded_server_that_does_not_answer_is_an_error() -> None:
    async def work() -> str:
        raise OutcomeUnknown("lost")

    waiting, _ = startup(waits=False)
    with pytest.RaisesGroup(OutcomeUnknown):
        await waiting.until_available(work)


@pytest.mark.parametrize("work", [trio.sleep_forever, failing_until(math.inf, [])])
async def test_a_stop_ends_the_attempt_and_the_pause(
    autojump_clock: MockClock, work: Callable[[], Awaitable[str]]
) -> None:
    waiting, stopping = startup()
    results: list[str | None] = []

    async def wait() -> None:
        results.append(await waiting.until_available(work))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.sleep(20)
        assert results == []
        stopping.set()
    assert results == [None]
