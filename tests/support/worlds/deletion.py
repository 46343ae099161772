"""Deletions of projects and organizations in one transaction, for tests that need its locks."""

from uuid import UUID

from leadline.storage.accounts.rows import DeletionCounts
from leadline.storage.accounts.rules.access import Principal
from leadline.storage.accounts.tables.operations import lock_running
from leadline.storage.engine.pools import Tx
from leadline.storage.retirement.transactions.delete_tenant import (
    begin_organization_deletion,
    begin_project_deletion,
    delete_next,
)

_UNCOUNTED = DeletionCounts(0, 0, 0, 0, 0, 0)


async def delete_project(tx: Tx, principal: Principal, project: UUID) -> None:
    await _finish(tx, await begin_project_deletion(tx, principal, project, _UNCOUNTED))


async def delete_organization(tx: Tx, principal: Principal, organization: UUID) -> None:
    await _finish(tx, await begin_organization_deletion(tx, principal, organization, _UNCOUNTED))


async def _finish(tx: Tx, operation: UUID) -> None:
    # The product performs each step in its own transaction.
    tx.holds_all()
    while (row := await lock_running(tx, operation)) is not None:
        await delete_next(tx, row)
