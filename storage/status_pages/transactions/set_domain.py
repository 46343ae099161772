"""Domain of a status page."""

from uuid import UUID

from ...accounts.rules.access import Principal
from ...accounts.transactions.authorize import audit
from ...core.refusal import Refused, expect
from ...engine.pools import Tx
from ..rows import PageRow
from ..rules.status_page_edit import domain_fault
from ..tables import status_page_domains as page_domains
from ..tables.status_pages import raise_generation
from .edit_pages import find_page, lock_page, page_target, written


async def set_domain(
    tx: Tx, principal: Principal, page: UUID, domain: str, own_host: str
) -> PageRow:
    """Sets the domain of a page; empty removes it. `own_host` is that of the console.

    Raises:
        Refused not_found, forbidden, invalid, domain_taken.
    """
    row = await lock_page(tx, await find_page(tx, principal, page))
    name = domain.strip().lower()
    expect("domain", domain_fault(name, own_host) if name else None)
    if (row.domain or "") == name:
        return row
    if not await page_domains.set_domain(tx, row.org, row.id, name):
        raise Refused("domain_taken")
    await raise_generation(tx, row)
    target = f"{page_target(row)} domain={name or 'none'}"
    await audit(tx, principal, row.org, "status_page.set_domain", target)
    return await written(tx, page)
