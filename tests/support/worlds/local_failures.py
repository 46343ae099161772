"""Simulated local failures: a database that is unavailable to selected transactions."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import trio

from leadline.storage.core.refusal import Unavailable
from leadline.storage.engine.pools import Pool, Tx


class FlakyPool:
    """A pool in which transactions with some names fail: before their commit, or after it, when the
    caller cannot know whether it succeeded.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self.fail_before: set[str] = set()
        self.fail_after: set[str] = set()
        # Set by the first failure.
        self.failed = trio.Event()

    @asynccontextmanager
    async def transaction(self, name: str, **given: Any) -> AsyncIterator[Tx]:
        async with self._pool.transaction(name, **given) as tx:
            yield tx
            if name in self.fail_before:
                self.failed.set()
                raise Unavailable(f"{name}: the store is away")
        if name in self.fail_after:
            self.failed.set()
            raise Unavailable(f"{name}: the answer was lost")

    async def transact(self, name: str, work: Callable[[Tx], Awaitable[Any]]) -> Any:
        async with self.transaction(name) as tx:
            return await work(tx)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pool, name)
