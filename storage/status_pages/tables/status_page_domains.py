"""Domains of status pages: proved ones, unique in the installation, and claims without a proof.

A page has at most one of each. The caller has locked the page. The row of another page is written
without its lock, so two pages that take each other's domain can conflict; the caller repeats.
"""

from typing import Final
from uuid import UUID

import msgspec

from ...engine.pools import Tx

_CLEAR: Final = "delete from status_page_domains where org = %(org)s and page = %(page)s"
_CLEAR_CLAIM: Final = (
    "delete from status_page_domain_claims where org = %(org)s and page = %(page)s"
)
_RELEASE: Final = """
delete from status_page_domains
where domain = %(domain)s and org = %(org)s and page = %(page)s
  and token is not distinct from %(token)s
"""
_SET: Final = """
insert into status_page_domains (domain, org, page, token, proved_at)
values (%(domain)s, %(org)s, %(page)s, %(token)s, at(%(now)s))
on conflict (domain) do nothing
returning page
"""
_CLAIM: Final = """
insert into status_page_domain_claims (org, page, domain, token, claimed_at)
values (%(org)s, %(page)s, %(domain)s, %(token)s, at(%(now)s))
on conflict (org, page) do update
  set domain = excluded.domain, token = excluded.token, claimed_at = excluded.claimed_at,
    checked_at = null, reason = null
"""
_NOTE: Final = """
update status_page_domain_claims set checked_at = at(%(now)s), reason = %(reason)s
where org = %(org)s and page = %(page)s
"""
_HOLDER: Final = """
select n.org, n.page, g.uid, n.token from status_page_domains n
  join status_pages g on g.org = n.org and g.id = n.page
where n.domain = %(domain)s
"""


class HolderRow(msgspec.Struct, frozen=True):
    """Page that has a domain. `token` is None if the domain was set before proofs existed."""

    org: int
    page: int
    page_uid: UUID
    token: str | None


async def select_holder(tx: Tx, domain: str) -> HolderRow | None:
    return await tx.one(HolderRow, _HOLDER, domain=domain)


async def clear_domains(tx: Tx, org: int, page: int) -> None:
    """Removes the domain and the claim of a locked page."""
    await tx.execute(_CLEAR, org=org, page=page)
    await clear_claim(tx, org, page)


async def clear_claim(tx: Tx, org: int, page: int) -> None:
    await tx.execute(_CLEAR_CLAIM, org=org, page=page)


async def upsert_claim(tx: Tx, org: int, page: int, domain: str, token: str) -> None:
    """Replaces the claim of a locked page. Its domain, if it has one, stays."""
    await tx.execute(_CLAIM, org=org, page=page, domain=domain, token=token, now=tx.now)


async def note_check(tx: Tx, org: int, page: int, reason: str) -> None:
    """Stores why the last check of the claim of a locked page found no proof."""
    await tx.execute(_NOTE, org=org, page=page, reason=reason, now=tx.now)


async def release_domain(tx: Tx, holder: HolderRow, domain: str) -> bool:
    """Removes the domain of another page. Returns False if it has changed meanwhile."""
    values = {"org": holder.org, "page": holder.page, "token": holder.token}
    return await tx.execute(_RELEASE, domain=domain, **values) == 1


async def insert_domain(tx: Tx, org: int, page: int, domain: str, token: str) -> bool:
    """Replaces the domain and the claim of a locked page by a proved domain.

    Returns False if another page has the domain.
    """
    await clear_domains(tx, org, page)
    values = {"org": org, "page": page, "domain": domain, "token": token}
    return await tx.value(_SET, now=tx.now, **values) is not None
