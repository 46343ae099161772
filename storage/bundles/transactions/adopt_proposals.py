"""Adoption of proposed contact methods: gives members the methods of bundles.

It runs after an application, which can take minutes: requests of these people would wait for their
accounts. Proposals stay due until an account has them, and any process continues.
"""

import logging
from typing import Final
from uuid import UUID

from ...core.refusal import Unavailable
from ...engine.pools import Pool
from ..tables.bundle_people import adopt_methods, select_due_accounts

log = logging.getLogger("leadline.adopt_proposals")

ACCOUNTS_AT_ONCE: Final = 100


async def adopt_proposals(pool: Pool, project: UUID | None = None, after: int = 0) -> int | None:
    """Adopts the proposals of up to 100 accounts, each in a transaction of its own.

    A locked account stays due, and so does one that fails. `project` None is for all projects.
    Returns the last account if more can be due, otherwise None. `after` continues there.
    """
    async with pool.transaction("due_proposals", read_only=True) as tx:
        users = await select_due_accounts(tx, project, after, ACCOUNTS_AT_ONCE)
    for user in users:
        try:
            async with pool.transaction("adopt_proposals") as tx:
                await adopt_methods(tx, user)
        except Unavailable:
            raise
        except Exception:
            # The other accounts do not wait for one that fails.
            log.exception("proposals not adopted")
    return users[-1] if len(users) == ACCOUNTS_AT_ONCE else None


async def adopt_after_application(pool: Pool, project: UUID) -> None:
    """Adopts proposals of a committed application. An error leaves them due."""
    try:
        await adopt_proposals(pool, project)
    except Unavailable as error:
        log.warning("proposals not adopted yet", extra={"cause": str(error)})
