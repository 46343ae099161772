"""Reads of delivery addresses."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

import msgspec

from ...core.instant import Instant
from ...core.key import SubscriberKey, key_arrays
from ...engine.pools import Tx

_COLUMNS: Final = """
s.org, s.id, s.uid, s.page, g.uid, g.slug, g.title, g.visibility, n.domain, g.token_ciphertext,
p.id, s.kind, s.address, s.confirmed_at, s.bounces, s.suspended_at, s.token_ciphertext,
s.created_at, case when g.language = 'auto' then s.language else g.language end
"""

_FROM: Final = """
from subscribers s join status_pages g on g.org = s.org and g.id = s.page
  left join projects p on p.org = g.org and p.id = g.project
  left join status_page_domains n on n.org = g.org and n.page = g.id
"""

_BY_KEY: Final = f"""
select {_COLUMNS} {_FROM}
  join unnest(%(orgs)s::int[], %(ids)s::int[]) as t(org, id) on s.org = t.org and s.id = t.id
"""


class SubscriberRow(msgspec.Struct, frozen=True):
    """A subscriber with its status page's data for mails. `project` is the page's project."""

    org: int
    id: int
    uid: UUID
    page: int
    page_uid: UUID
    page_slug: str
    page_title: str
    page_visibility: str
    page_domain: str | None
    page_token_ciphertext: bytes | None
    project: int | None
    kind: str
    address: str
    confirmed_at: Instant | None
    bounces: int
    suspended_at: Instant | None
    token_ciphertext: bytes
    created_at: Instant
    # That of the page, else of the form that asked; None if neither is known.
    language: str | None


async def select_subscribers_by_key(tx: Tx, keys: Sequence[SubscriberKey]) -> list[SubscriberRow]:
    """Returns the subscribers that still exist."""
    if not keys:
        return []
    return await tx.structs(SubscriberRow, _BY_KEY, **key_arrays(keys, "ids"))
