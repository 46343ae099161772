"""Runbook of a service: the URL of the instructions, which every page and incident names."""

from uuid import UUID

from ...accounts.rules.access import Principal
from ...accounts.transactions.authorize import audit
from ...core.refusal import expect
from ...core.runbook import runbook_fault
from ...engine.pools import Tx
from ..rows import ServiceRow
from ..tables.services import set_runbook
from .lock_service import demand_service, expect_unmanaged, target_of, written


async def put_runbook(
    tx: Tx, principal: Principal, project: UUID, service: UUID, url: str
) -> ServiceRow:
    """Sets the URL of the runbook; an empty text removes it.

    Raises:
        Refused not_found, forbidden, invalid with its field, managed_by_file.
    """
    before = await demand_service(tx, principal, project, service)
    expect("runbook_url", runbook_fault(url))
    if url == before.runbook_url:
        return before
    expect_unmanaged(principal, before)
    await set_runbook(tx, before.key, url)
    target = f"{target_of(before)} runbook={'set' if url else 'none'}"
    await audit(tx, principal, before.org, "service.update", target)
    return await written(tx, service)
