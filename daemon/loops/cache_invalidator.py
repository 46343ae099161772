"""Invalidation of the public page caches in all processes after an edit, and its event.

Edits are combined into one notification per pass. It is sent on the PostgreSQL notification
channel of the processes, with the projects of the edits, so that the event streams of all processes
tell of them. A lost notification is harmless: a cache entry lives for one second, and screens ask
every few seconds.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Final
from uuid import UUID

import trio

from ...storage.accounts.rules.access import Scope
from ...storage.core.refusal import Unavailable
from ...storage.engine.connect import listening
from ...storage.engine.edit_notify import EDITED_MOST, EditedProject, notify_edited, read_edits
from ...storage.engine.pools import Pool
from ...storage.results.event_bus import Bus, EditEvent
from ..runtime.wake_event import WakeEvent

PAUSE_SECONDS: Final = 5.0


class CacheInvalidator:
    """Announces the edits of `process`, here on `bus` and to the other processes."""

    def __init__(self, pool: Pool, process: UUID, bus: Bus) -> None:
        self._pool = pool
        self._process = process
        self._bus = bus
        self._is_untold = False
        # Projects of edits that are not announced yet, in their order.
        self._projects: dict[tuple[int, int], None] = {}
        self.wake = WakeEvent()

    def note(self, scope: Scope | None) -> None:
        """Records that this process has accepted an edit."""
        self._is_untold = True
        if scope is not None:
            org, project = scope.organization, scope.project
            if isinstance(org, int) and isinstance(project, int):
                self._projects[org, project] = None
        self.wake.set()

    def hear(self, payloads: Collection[str]) -> None:
        """Publishes the edits of other processes."""
        for edits in map(read_edits, payloads):
            if edits is not None and edits.process != self._process:
                self._publish(edits.projects)

    async def pass_once(self) -> None:
        if not self._is_untold:
            return
        self._is_untold = False
        some = list(self._projects)[:EDITED_MOST]
        # Before the statement: an edit during it is announced by the next pass.
        for key in some:
            del self._projects[key]
        try:
            async with self._pool.statement("notify_edited") as tx:
                edited = await notify_edited(tx, self._process, some)
        except BaseException:
            self._projects = {**dict.fromkeys(some), **self._projects}
            # The loop passes again after its pause. A wakeup would end that of a lost database.
            self._is_untold = True
            raise
        if self._projects:
            self._is_untold = True
            self.wake.set()
        self._publish(edited)

    def _publish(self, projects: Collection[EditedProject]) -> None:
        for one in projects:
            self._bus.publish(EditEvent(one.org, one.id, one.uid))


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
