"""Public answers that are kept for a moment: read once, however many ask.

It keeps true: an answer was begun to be read at most FRESH_SECONDS ago, or is what one waited for;
whoever wrote something by this process reads it at once; of those who ask for the same thing
together one reads and the others wait for that. An answer that says the same as before stays the
very same bytes, so that clients who have them are told so, but not for longer than RENEWED_SECONDS,
as it also says when it was so.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from gzip import compress
from hashlib import sha256
from typing import Final

import trio

FRESH_SECONDS: Final = 1.0
RENEWED_SECONDS: Final = 60.0
ANSWERS_MOST: Final = 2_000
BYTES_MOST: Final = 64 << 20
# 2 ms for fifty components; the highest takes half as long again and saves a twentieth more.
GZIP_LEVEL: Final = 6


@dataclass(frozen=True, slots=True)
class LoadedContent:
    """What was read: `said` is equal where the same is said, and `write` makes the bytes of it."""

    said: object
    write: Callable[[], bytes]


@dataclass(slots=True, eq=False)
class CachedResponse:
    body: bytes
    tag: str
    said: object
    made_at: float
    _packed: bytes | None = None

    def packed(self) -> bytes:
        """The body by gzip, made for the first who wants it."""
        if self._packed is None:
            # Without the time, so that the same body is the same bytes.
            self._packed = compress(self.body, GZIP_LEVEL, mtime=0)
        return self._packed

    @property
    def packed_tag(self) -> str:
        """Other bytes, another tag."""
        return f'{self.tag[:-1]}-gz"'


@dataclass(slots=True, eq=False)
class _Entry:
    answer: CachedResponse
    read_at: float


@dataclass(slots=True, eq=False)
class _Reading:
    done: trio.Event
    answer: CachedResponse | None = None


class ResponseCache:
    def __init__(self) -> None:
        # What was asked for last is at the end.
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._bytes = 0
        self._reading: dict[Hashable, _Reading] = {}
        self._generation = 0
        self.hits = 0
        self.reads = 0

    def __len__(self) -> int:
        return len(self._entries)

    def forget(self) -> None:
        """Something was written: nothing that was read before it is told any more, and nobody who
        asks from now on waits for who began to read before."""
        self._generation += 1
        self._entries.clear()
        self._reading.clear()
        self._bytes = 0

    async def answer(
        self, key: Hashable, read: Callable[[], Awaitable[LoadedContent]]
    ) -> CachedResponse:
        """What is kept, or what `read` finds; whatever that raises is raised, and not kept."""
        while True:
            entry = self._entries.get(key)
            if entry is not None and trio.current_time() - entry.read_at < FRESH_SECONDS:
                self._entries.move_to_end(key)
                self.hits += 1
                return entry.answer
            reading = self._reading.get(key)
            if reading is None:
                return await self._read(key, read)
            await reading.done.wait()
            if reading.answer is not None:
                return reading.answer

    async def _read(
        self, key: Hashable, read: Callable[[], Awaitable[LoadedContent]]
    ) -> CachedResponse:
        reading = self._reading[key] = _Reading(trio.Event())
        generation, began = self._generation, trio.current_time()
        try:
            found = await read()
            self.reads += 1
            before = self._entries.get(key)
            answer = reading.answer = _same(before, found, began) or _made(found, began)
            if generation == self._generation:
                self._keep(key, _Entry(answer, began))
            return answer
        finally:
            if self._reading.get(key) is reading:
                del self._reading[key]
            reading.done.set()

    def _keep(self, key: Hashable, entry: _Entry) -> None:
        before = self._entries.pop(key, None)
        if before is not None:
            self._bytes -= len(before.answer.body)
        self._entries[key] = entry
        self._bytes += len(entry.answer.body)
        while len(self._entries) > ANSWERS_MOST or self._bytes > BYTES_MOST:
            _, gone = self._entries.popitem(last=False)
            self._bytes -= len(gone.answer.body)


def _same(before: _Entry | None, found: LoadedContent, now: float) -> CachedResponse | None:
    """What was told before, where it says the same still and is not too old for that."""
    if before is None or now - before.answer.made_at >= RENEWED_SECONDS:
        return None
    return before.answer if before.answer.said == found.said else None


def _made(found: LoadedContent, now: float) -> CachedResponse:
    body = found.write()
    return CachedResponse(body, f'"{sha256(body).hexdigest()[:16]}"', found.said, now)
