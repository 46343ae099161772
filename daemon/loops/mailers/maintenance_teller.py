"""Notifier of planned maintenance: queues each step for the subscribers of status pages."""

from dataclasses import dataclass
from functools import partial
from typing import Final

from ....storage.engine.pools import Pool
from ....storage.status_pages.tables.maintenance_notices import select_open_notices
from ....storage.status_pages.transactions.tell_maintenance import (
    find_telling_pages,
    note_due_steps,
    pass_on_notice,
)

PAUSE_SECONDS: Final = 15.0
NOTICES_AT_ONCE: Final = 1_000


@dataclass(frozen=True)
class MaintenanceTeller:
    pool: Pool

    async def pass_once(self) -> int:
        """Notes the steps that are due, and queues the messages; returns the number of steps.

        Each page, and each batch of messages, has a transaction of its own.
        """
        noted = 0
        async with self.pool.transaction("find_announced_maintenance", read_only=True) as tx:
            pages = await find_telling_pages(tx)
        for uid in pages:
            note = partial(note_due_steps, uid=uid)
            noted += await self.pool.transact("note_maintenance_steps", note)
        async with self.pool.transaction("open_maintenance_notices", read_only=True) as tx:
            waiting = await select_open_notices(tx, NOTICES_AT_ONCE)
        for key in waiting:
            while await self.pool.transact("tell_maintenance", partial(pass_on_notice, key=key)):
                pass
        return noted
