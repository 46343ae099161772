"""The response cache of public pages, on Trio's mock clock."""

from collections.abc import Awaitable, Callable

import pytest
import trio
from trio.testing import MockClock

from leadline.http.wire import response_cache as kept_module
from leadline.http.wire.response_cache import (
    FRESH_SECONDS,
    RENEWED_SECONDS,
    CachedResponse,
    LoadedContent,
    ResponseCache,
)


class Content:
    """Content with a counter of reads, a read time and a switch for failures."""

    def __init__(self) -> None:
        self.says = "one"
        self.reads = 0
        self.takes_seconds = 0.0
        self.fails = False

    async def read(self) -> LoadedContent:
        said = self.says
        self.reads += 1
        number = self.reads
        await trio.sleep(self.takes_seconds)
        if self.fails:
            raise OSError("database unavailable")
        return LoadedContent(said, f"{said} {number}".encode)


Reading = Callable[[], Awaitable[LoadedContent]]


async def test_a_fresh_answer_is_served_from_the_cache(autojump_clock: MockClock) -> None:
    kept, shelf = ResponseCache(), Content()
    first = await kept.answer("a", shelf.read)
    await trio.sleep(FRESH_SECONDS * 0.9)
    assert await kept.answer("a", shelf.read) is first
    shelf.says = "two"
    await trio.sleep(FRESH_SECONDS * 0.2)
    assert (await kept.answer("a", shelf.read)).body == b"two 2"


async def test_unchanged_content_keeps_its_bytes_for_a_minute(
    autojump_clock: MockClock,
) -> None:
    kept, shelf = ResponseCache(), Content()
    first = await kept.answer("a", shelf.read)
    began = trio.current_time()
    while trio.current_time() - began < RENEWED_SECONDS - FRESH_SECONDS:
        assert await kept.answer("a", shelf.read) is first
        await trio.sleep(FRESH_SECONDS)
    await trio.sleep(2 * FRESH_SECONDS)
    later = await kept.answer("a", shelf.read)
    assert later.body != first.body
    assert later.tag != first.tag
    assert shelf.reads > 50, "clients asked during the whole time"


async def test_concurrent_requests_share_one_read(autojump_clock: MockClock) -> None:
    kept, shelf = ResponseCache(), Content()
    shelf.takes_seconds = 5
    found: list[CachedResponse] = []

    async def ask() -> None:
        found.append(await kept.answer("a", shelf.read))

    async with trio.open_nursery() as nursery:
        for _ in range(50):
            nursery.start_soon(ask)
    assert shelf.reads == 1, "even if a read takes longer than the freshness of an answer"
    assert len(set(found)) == 1


async def test_a_write_invalidates_the_cache(autojump_clock: MockClock) -> None:
    kept, shelf = ResponseCache(), Content()
    await kept.answer("a", shelf.read)
    shelf.says = "two"
    kept.forget()
    assert (await kept.answer("a", shelf.read)).body == b"two 2"


async def test_a_read_that_began_before_a_write_is_not_cached(
    autojump_clock: MockClock,
) -> None:
    kept, shelf = ResponseCache(), Content()
    shelf.takes_seconds = 0.5
    told: dict[str, bytes] = {}

    async def ask(name: str) -> None:
        told[name] = (await kept.answer("a", shelf.read)).body

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask, "before")
        await trio.sleep(0.1)
        shelf.says = "two"
        kept.forget()
        await ask("after")
    assert told == {"before": b"one 1", "after": b"two 2"}
    assert (await kept.answer("a", shelf.read)).body == b"two 2"


async def test_a_failed_read_is_not_cached(autojump_clock: MockClock) -> None:
    kept, shelf = ResponseCache(), Content()
    shelf.fails = True
    with pytest.raises(OSError, match="unavailable"):
        await kept.answer("a", shelf.read)
    shelf.fails = False
    assert (await kept.answer("a", shelf.read)).body == b"one 2"


async def test_a_waiting_request_reads_after_the_reader_is_cancelled(
    autojump_clock: MockClock,
) -> None:
    kept, shelf = ResponseCache(), Content()
    shelf.takes_seconds = 0.5
    async with trio.open_nursery() as nursery:
        scope = trio.CancelScope()

        async def impatient() -> None:
            with scope:
                await kept.answer("a", shelf.read)

        nursery.start_soon(impatient)
        await trio.sleep(0.1)
        nursery.start_soon(kept.answer, "a", shelf.read)
        await trio.sleep(0.1)
        scope.cancel()
    assert shelf.reads == 2


async def test_the_cache_is_bounded_in_answers_and_bytes(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_module, "ANSWERS_MOST", 10)
    kept, shelf = ResponseCache(), Content()
    for n in range(30):
        await kept.answer(n, shelf.read)
    assert len(kept) == 10
    reads = shelf.reads
    await kept.answer(29, shelf.read)
    assert shelf.reads == reads
    monkeypatch.setattr(kept_module, "BYTES_MOST", 12)
    await kept.answer(30, shelf.read)
    assert len(kept) == 2
