"""Queue whose items wait for each other: a batch is taken when it is full, or one of it must go.

An item does not wake the collector while it only waits: a wake-up for each result was a tenth of
the CPU of a check.
"""

from math import inf
from typing import Generic, TypeVar

import trio

T = TypeVar("T")


class BatchQueue(Generic[T]):
    """Queue of up to `most` items, taken in batches of up to `batch_most`, in their order."""

    def __init__(self, most: int, batch_most: int) -> None:
        self._send, self._receive = trio.open_memory_channel[tuple[T, float]](most)
        self._batch_most = batch_most
        self._collecting = trio.Lock()
        # Until when the collector sleeps, -inf if it does not, and the items that end its sleep.
        self._sleeps_until = -inf
        self._room = 0
        self._roused = trio.Event()
        # Items of the next batch that the collector has.
        self._held: list[tuple[T, float]] = []

    def __len__(self) -> int:
        """Returns the number of items, also those that wait for the rest of their batch."""
        return self._waiting() + len(self._held)

    def _waiting(self) -> int:
        return self._receive.statistics().current_buffer_used

    async def put(self, item: T, flush_at: float) -> None:
        """Waits for a place. The batch of the item is taken at the Trio instant `flush_at` at the
        latest. Raises: trio.ClosedResourceError after `close`.
        """
        await self._send.send((item, flush_at))
        if self._sleeps_until > flush_at or (
            self._sleeps_until > -inf and self._waiting() >= self._room
        ):
            self._roused.set()

    def close(self) -> None:
        """Accepts no further item. The rest is taken in batches immediately."""
        self._send.close()
        self._roused.set()

    async def collect(self) -> list[T]:
        """Returns the next batch; empty if the queue is closed and has no item.

        After a cancellation, `drain` returns the items that it had.
        """
        async with self._collecting:
            batch = self._held = []
            try:
                batch.append(await self._receive.receive())
            except trio.EndOfChannel:
                return []
            is_flushed = False
            while True:
                is_open = self._take_waiting(batch)
                if len(batch) == self._batch_most or is_flushed or not is_open:
                    self._held = []
                    return [item for item, _ in batch]
                is_flushed = await self._sleep(batch)

    def _take_waiting(self, batch: list[tuple[T, float]]) -> bool:
        """Returns whether the queue can get further items."""
        while len(batch) < self._batch_most:
            try:
                batch.append(self._receive.receive_nowait())
            except trio.WouldBlock:
                return True
            except trio.EndOfChannel:
                return False
        return True

    async def _sleep(self, batch: list[tuple[T, float]]) -> bool:
        """Sleeps until the batch must go, or can be full. Returns whether it must go."""
        self._roused = trio.Event()
        self._room = self._batch_most - len(batch)
        self._sleeps_until = min(flush_at for _, flush_at in batch)
        try:
            with trio.move_on_at(self._sleeps_until) as sleep:
                await self._roused.wait()
        finally:
            self._sleeps_until = -inf
        return sleep.cancelled_caught

    def drain(self) -> list[T]:
        """Removes and returns all items. No task may collect."""
        found = [item for item, _ in self._held]
        self._held = []
        while True:
            try:
                found.append(self._receive.receive_nowait()[0])
            except (trio.WouldBlock, trio.EndOfChannel):
                return found
