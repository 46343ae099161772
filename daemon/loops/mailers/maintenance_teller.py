"""Notifier of planned maintenance: queues each step for the subscribers of status pages."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

from ....storage.core.refusal import Unavailable
from ....storage.engine.pools import Pool
from ....storage.status_pages.tables.maintenance_notices import select_open_notices
from ....storage.status_pages.transactions.tell_maintenance import (
    find_telling_pages,
    note_due_steps,
    pass_on_notice,
)

log = logging.getLogger("leadline.maintenance_teller")

PAUSE_SECONDS: Final = 15.0
NOTICES_AT_ONCE: Final = 1_000


@dataclass(frozen=True)
class MaintenanceTeller:
    pool: Pool

    async def pass_once(self) -> int:
        """Notes the steps that are due, and queues the messages; returns the number of steps.

        Each page, and each batch of messages, has a transaction of its own. One that fails is
        logged and repeated in the next pass; the others continue.
        """
        noted = 0
        async with self.pool.transaction("find_maintenance_notices", read_only=True) as tx:
            pages = await find_telling_pages(tx)
            waiting = await select_open_notices(tx, NOTICES_AT_ONCE)
        for uid in pages:
            with _logged(page=str(uid)):
                note = partial(note_due_steps, uid=uid)
                noted += await self.pool.transact("note_maintenance_steps", note)
        if noted:
            async with self.pool.transaction("open_maintenance_notices", read_only=True) as tx:
                waiting = await select_open_notices(tx, NOTICES_AT_ONCE)
        for key in waiting:
            with _logged(org=key.org, page_key=key.page, step=key.step):
                pass_on = partial(pass_on_notice, key=key)
                while await self.pool.transact("tell_maintenance", pass_on):
                    pass
        return noted


@contextmanager
def _logged(**about: object) -> Iterator[None]:
    """Logs the failure of one page, so that it does not stop the pages of other tenants."""
    try:
        yield
    except Unavailable as error:
        log.warning("maintenance notices postponed", extra={**about, "cause": str(error)})
    except Exception:
        log.exception("maintenance notices failed", extra=about)
