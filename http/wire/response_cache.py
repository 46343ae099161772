"""Cache of public answers: concurrent requests cause one read.

Invariant: the read of an answer began at most FRESH_SECONDS ago, or the request waited for it. A
write in this process is visible to the next request. Of concurrent requests with the same key, one
reads and the others wait for its answer.

An answer with the same content as before keeps its bytes, so that clients get 304. After
RENEWED_SECONDS the bytes are renewed, because they contain the instant of the read.
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
    """Result of a read. Equal `said` means equal content; `write` encodes it."""

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
        """Returns the body compressed by gzip. The first caller compresses it."""
        if self._packed is None:
            # Without the time, so that the same body is the same bytes.
            self._packed = compress(self.body, GZIP_LEVEL, mtime=0)
        return self._packed

    @property
    def packed_tag(self) -> str:
        """Returns the tag of the compressed body, whose bytes differ."""
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
        # Ordered by last use; the most recent entry is last.
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._bytes = 0
        self._reading: dict[Hashable, _Reading] = {}
        self._generation = 0
        self.hits = 0
        self.reads = 0

    def __len__(self) -> int:
        return len(self._entries)

    def forget(self) -> None:
        """Drops all entries after a write.

        Later requests do not wait for reads that began before.
        """
        self._generation += 1
        self._entries.clear()
        self._reading.clear()
        self._bytes = 0

    async def answer(
        self, key: Hashable, read: Callable[[], Awaitable[LoadedContent]]
    ) -> CachedResponse:
        """Returns the cached answer, or reads it.

        An exception of `read` propagates and is not cached.
        """
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
    """Returns the previous answer if its content is equal and it is not too old."""
    if before is None or now - before.answer.made_at >= RENEWED_SECONDS:
        return None
    return before.answer if before.answer.said == found.said else None


def _made(found: LoadedContent, now: float) -> CachedResponse:
    body = found.write()
    return CachedResponse(body, f'"{sha256(body).hexdigest()[:16]}"', found.said, now)
