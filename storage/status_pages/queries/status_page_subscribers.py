"""Subscribers of a status page for its owners, and one subscription by its token."""

from collections.abc import Collection
from typing import Final
from uuid import UUID

import msgspec

from ...core.instant import Instant
from ...core.token import digest
from ...engine.pools import Tx
from ..rows import BrandedRow
from ..rules.subscription import CHATS, CONFIRM_US

_OF_PAGE: Final = """
select s.uid, g.uid, s.kind, s.address, s.confirmed_at, s.created_at, s.bounces, s.suspended_at
from subscribers s join status_pages g on g.org = s.org and g.id = s.page
where s.org = %(org)s and s.page = %(page)s order by s.id
"""
# As `shown_address`: a filter must not reveal the URL of a chat, which is a secret.
_SHOWN: Final = r"""
case when s.kind = any(%(chats)s) then
  coalesce(substring(s.address from '^[^:/]+://(?:[^/?#@]*@)?([^/:?#@]+)'), '')
  || '/…' || right(s.address, 4)
else s.address end
"""
_FOUND: Final = (
    _OF_PAGE.replace(
        "order by",
        f"and position(lower(%(part)s) in lower({_SHOWN})) > 0 order by",
    )
    + " limit %(most)s"
)
_BY_TOKEN: Final = f"""
select g.accent_color, g.logo_url, g.footer_text, g.support_url, g.title, g.slug, s.kind,
  s.address, s.confirmed_at,
  array(select c.name from status_components c
    where c.org = s.org and c.page = s.page and c.uid = any(s.requested_components)
    order by c.position, c.id),
  s.requested_at > at(%(now)s - {CONFIRM_US})
from subscribers s join status_pages g on g.org = s.org and g.id = s.page
where s.token_hash = %(hashed)s
"""
_COUNT_CONFIRMED: Final = """
select count(*) from subscribers
where org = %(org)s and page = %(page)s and confirmed_at is not null and suspended_at is null
"""
_COUNTS: Final = """
select page, count(*)::int from subscribers
where org = %(org)s and page = any(%(pages)s::int[])
  and confirmed_at is not null and suspended_at is null
group by page
"""


class SubscriberItem(msgspec.Struct, frozen=True):
    """Subscriber. `bounces` are consecutive; sending has stopped since `suspended_at`."""

    uid: UUID
    page_uid: UUID
    kind: str
    address: str
    confirmed_at: Instant | None
    created_at: Instant
    bounces: int
    suspended_at: Instant | None


class Subscription(BrandedRow, frozen=True):
    """Subscription. `chosen` are names of the requested components, empty for the whole page."""

    page_title: str
    page_slug: str
    kind: str
    address: str
    confirmed_at: Instant | None
    chosen: list[str]
    can_confirm: bool


async def select_subscribers(tx: Tx, org: int, page: int) -> list[SubscriberItem]:
    """Returns the subscribers, oldest first."""
    return await tx.structs(SubscriberItem, _OF_PAGE, org=org, page=page)


async def find_subscribers(
    tx: Tx, org: int, page: int, part: str, most: int
) -> list[SubscriberItem]:
    """Returns the subscribers with `part` in their shown address, ignoring case.

    An empty part matches all.
    """
    chats = sorted(CHATS)
    return await tx.structs(
        SubscriberItem, _FOUND, org=org, page=page, part=part, most=most, chats=chats
    )


async def select_subscription(tx: Tx, token: str) -> Subscription | None:
    return await tx.one(Subscription, _BY_TOKEN, hashed=digest(token), now=tx.now)


async def count_confirmed_of(tx: Tx, org: int, pages: Collection[int]) -> dict[int, int]:
    """Returns the number of subscribers that receive updates, by page; no entry for none."""
    return dict(await tx.rows(_COUNTS, org=org, pages=list(pages)))


async def count_confirmed(tx: Tx, org: int, page: int) -> int:
    """Returns the number of subscribers that receive updates."""
    count: int = await tx.value(_COUNT_CONFIRMED, org=org, page=page)
    return count
