"""Reads that concurrent requests share, so that throughput does not fall with their number.

Invariant: a caller gets the result of a read that began after its call. So a caller sees every
write that was acknowledged before it asked, and no result is kept after it was handed out. While a
read of a key is active, later callers of the key wait; the next read serves all of them.

The key contains everything that the result depends on: the project, the selection, and what the
caller may see. The caller has been admitted before it calls.
"""

from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import trio

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class _Read(Generic[T]):
    """A read of one caller. When it is over without a result, it has failed or was cancelled."""

    over: trio.Event = field(default_factory=trio.Event)
    found: list[T] = field(default_factory=list)
    failed: bool = False


class SharedReads(Generic[T]):
    def __init__(self) -> None:
        # The active read of each key, and the one that begins after it.
        self._active: dict[Hashable, _Read[T]] = {}
        self._next: dict[Hashable, _Read[T]] = {}
        # Reads, and callers that got the result of another one.
        self.reads = 0
        self.shared = 0

    def __len__(self) -> int:
        """Returns the number of keys with an active or a waiting read."""
        return len(self._active.keys() | self._next.keys())

    async def get(self, key: Hashable, read: Callable[[], Awaitable[T]]) -> T:
        """Returns the result of a read that begins after this call.

        If the read of another caller fails, this caller reads for itself, so an exception is always
        that of the caller's own read. If it is cancelled, this caller joins the next one.
        """
        while (joined := self._next.get(key)) is not None:
            await joined.over.wait()
            if joined.found:
                self.shared += 1
                return joined.found[0]
            if joined.failed:
                return await read()
        return await self._lead(key, read)

    async def _lead(self, key: Hashable, read: Callable[[], Awaitable[T]]) -> T:
        mine: _Read[T] = _Read()
        active = self._active.get(key)
        try:
            if active is not None:
                self._next[key] = mine
                await active.over.wait()
                # From now on callers wait for a later read.
                del self._next[key]
            self._active[key] = mine
            self.reads += 1
            found = await read()
            mine.found.append(found)
            return found
        except Exception:
            mine.failed = True
            raise
        finally:
            for reads in (self._active, self._next):
                if reads.get(key) is mine:
                    del reads[key]
            mine.over.set()
