"""What is kept of public pages is forgotten in every process once one has taken an edit.

Told after the edit, many as one, and heard on the connection on which processes ask each other;
what is missed there is found out within a second, as nothing is kept for longer.
"""

from collections.abc import Callable, Mapping
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
        """This process has taken one."""
        self._is_untold = True
        self.wake.set()

    async def pass_once(self) -> None:
        if self._is_untold:
            self._is_untold = False
            async with self._pool.statement("notify_edited") as tx:
                await notify_edited(tx)


async def hear(
    dsn: str, heard: Mapping[str, Callable[[], None]], again: Callable[[], None] = lambda: None
) -> None:
    """Calls what belongs to a channel whenever anything is told on it, and `again` whenever it
    begins to listen: what was told before that was not heard."""
    while True:
        try:
            async with listening(dsn, *heard) as listener:
                again()
                while True:
                    for channel in {notice.channel for notice in await listener.batch()}:
                        heard[channel]()
        except Unavailable:
            await trio.sleep(PAUSE_SECONDS)
