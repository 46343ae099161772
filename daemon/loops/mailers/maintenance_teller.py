"""Teller of planned maintenance: queues each step for the subscribers of status pages."""

from dataclasses import dataclass
from typing import Final

from ....storage.engine.pools import Pool
from ....storage.status_pages.transactions.tell_maintenance import note_due_steps, pass_on_notice

PAUSE_SECONDS: Final = 15.0


@dataclass(frozen=True)
class MaintenanceTeller:
    pool: Pool

    async def pass_once(self) -> int:
        """Notes the steps that are due, and queues the messages; returns the number of steps."""
        noted = await self.pool.transact("note_maintenance_steps", note_due_steps)
        while await self.pool.transact("tell_maintenance", pass_on_notice):
            pass
        return noted
