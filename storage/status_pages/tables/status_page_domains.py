"""Domains of status pages: at most one per page, unique in the installation."""

from typing import Final

from ...engine.pools import Tx

_CLEAR: Final = "delete from status_page_domains where org = %(org)s and page = %(page)s"
_SET: Final = """
insert into status_page_domains (domain, org, page) values (%(domain)s, %(org)s, %(page)s)
on conflict (domain) do nothing
returning page
"""
_OF_PAGE: Final = """
select domain from status_page_domains where org = %(org)s and page = %(page)s
"""


async def set_domain(tx: Tx, org: int, page: int, domain: str) -> bool:
    """Replaces the domain of a locked page; empty removes it.

    Returns False if another page has the domain.
    """
    await tx.execute(_CLEAR, org=org, page=page)
    if not domain:
        return True
    return await tx.value(_SET, org=org, page=page, domain=domain) is not None


async def select_domain(tx: Tx, org: int, page: int) -> str | None:
    domain: str | None = await tx.value(_OF_PAGE, org=org, page=page)
    return domain
