"""Invalidation of the public page caches in all processes after an edit.

Edits are combined into one notification per pass. It is sent on the PostgreSQL notification
channel of the processes. A lost notification is harmless after one second, the longest lifetime of
a cache entry.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Final

import trio

from ...storage.core.refusal import Unavailable
from ...storage.engine.connect import listening
from ...storage.engine.edit_notify import notify_edited
from ...storage.engine.pools import Pool
from ..runtime.wake_event import WakeEvent

PAUSE_SECONDS: Final = 5.0


class CacheInvalidator:
    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._is_untold = False
        self.wake = WakeEvent()

    def note(self) -> None:
        """Records that this process has accepted an edit."""
        self._is_untold = True
        self.wake.set()

    async def pass_once(self) -> None:
        if self._is_untold:
            self._is_untold = False
            async with self._pool.statement("notify_edited") as tx:
                await notify_edited(tx)


async def hear(
    dsn: str,
    heard: Mapping[str, Callable[[Collection[str]], None]],
    hearing: Callable[[bool], None] = lambda _: None,
) -> None:
    """Calls the callback of a channel with the payloads of each batch of its notifications.

    Calls `hearing` with True each time the connection begins to listen, because it misses the
    earlier notifications, and with False when it ends.
    """
    while True:
        try:
            async with listening(dsn, *heard) as listener:
                hearing(True)
                while True:
                    batch = await listener.batch()
                    for channel in {notice.channel for notice in batch}:
                        payloads = {one.payload for one in batch if one.channel == channel}
                        heard[channel](payloads)
        except Unavailable:
            hearing(False)
            await trio.sleep(PAUSE_SECONDS)
