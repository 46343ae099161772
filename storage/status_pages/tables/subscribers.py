"""Subscribers of status pages. The token is already encrypted.

Deletion of a page deletes its subscribers; deletion of a subscriber deletes its unsent events.
"""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from ...engine.pools import Tx
from ..rules.subscription import BOUNCES_MOST, CONFIRM_US, MAIL_PAUSE_US

# A recent request blocks another. The single statement decides also for concurrent requests.
_MAY_WRITE: Final = f"""
insert into subscription_requests (address_hash, requested_at) values (%(hashed)s, at(%(now)s))
on conflict (address_hash) do update set requested_at = excluded.requested_at
  where subscription_requests.requested_at <= at(%(now)s - {MAIL_PAUSE_US})
returning true
"""
_COUNT: Final = "select count(*) from subscribers where org = %(org)s and page = %(page)s"
_COUNT_ASKED: Final = """
select count(*) from (
  select from subscribers s
    join destinations d on d.org = s.org and d.subscriber = s.id
    join outbox o on o.org = d.org and o.destination = d.id and o.status = 'pending'
  where s.org = %(org)s and s.page = %(page)s and s.kind <> 'mail'
    and o.topic = 'subscription' limit %(most)s) as asked
"""
_ASK: Final = """
insert into subscribers (org, uid, page, kind, address, address_key, requested_components,
  language, requested_at, token_hash, token_ciphertext, created_at)
values (%(org)s, %(uid)s, %(page)s, %(kind)s, %(address)s, %(address_key)s,
  %(components)s::uuid[], %(language)s, at(%(now)s), %(hashed)s, %(sealed)s, at(%(now)s))
on conflict (org, page, kind, address_key) do update
  set requested_components = excluded.requested_components, requested_at = excluded.requested_at,
    language = case when subscribers.confirmed_at is null
      then coalesce(excluded.language, subscribers.language) else subscribers.language end
returning id
"""
_ADDRESSED: Final = """
insert into destinations (org, subscriber) values (%(org)s, %(subscriber)s)
on conflict (org, subscriber) do update set subscriber = excluded.subscriber
returning id
"""
_CONFIRM: Final = f"""
update subscribers set confirmed_at = coalesce(confirmed_at, at(%(now)s)),
  components = requested_components, bounces = 0, suspended_at = null
where token_hash = %(hashed)s and requested_at > at(%(now)s - {CONFIRM_US})
returning id
"""
_DELETE_BY_TOKEN: Final = "delete from subscribers where token_hash = %(hashed)s"
_DELETE: Final = """
delete from subscribers where org = %(org)s and page = %(page)s and uid = %(uid)s
returning kind
"""
_BOUNCE: Final = f"""
update subscribers set bounces = bounces + 1, suspended_at =
  case when bounces + 1 >= {BOUNCES_MOST} then coalesce(suspended_at, at(%(now)s)) end
where org = %(org)s and id = %(id)s
returning bounces, suspended_at is not null
"""
_REACHED: Final = """
update subscribers set bounces = 0 where org = %(org)s and id = %(id)s and bounces > 0
"""
_DROP_UNCONFIRMED: Final = f"""
delete from subscribers where confirmed_at is null and requested_at <= at(%(now)s - {CONFIRM_US})
"""
_DROP_REQUESTS: Final = f"""
delete from subscription_requests where requested_at <= at(%(now)s - {MAIL_PAUSE_US})
"""


async def may_write_to(tx: Tx, address_hash: bytes) -> bool:
    """Returns whether a request may be sent to an address.

    If so, and if this is committed, further ones are blocked for MAIL_PAUSE_US.
    """
    return await tx.value(_MAY_WRITE, hashed=address_hash, now=tx.now) is not None


async def count_subscribers(tx: Tx, org: int, page: int) -> int:
    count: int = await tx.value(_COUNT, org=org, page=page)
    return count


async def count_asked_webhooks(tx: Tx, org: int, page: int, most: int) -> int:
    """Returns the number of undelivered requests to webhooks of the page, up to `most`."""
    count: int = await tx.value(_COUNT_ASKED, org=org, page=page, most=most)
    return count


async def ask_subscriber(
    tx: Tx,
    *,
    org: int,
    page: int,
    uid: UUID,
    kind: str,
    address: str,
    address_key: str,
    components: Sequence[UUID] | None,
    language: str | None,
    hashed: bytes,
    sealed: bytes,
) -> int:
    """Inserts or updates a subscriber and returns its destination.

    A known address keeps its id and its confirmed components. A confirmed one also keeps its
    language, as anybody can send the request.
    """
    key = await tx.value(
        _ASK,
        org=org,
        page=page,
        uid=uid,
        kind=kind,
        address=address,
        address_key=address_key,
        components=None if components is None else list(components),
        language=language,
        hashed=hashed,
        sealed=sealed,
        now=tx.now,
    )
    destination: int = await tx.value(_ADDRESSED, org=org, subscriber=key)
    return destination


async def confirm_subscriber(tx: Tx, token_hash: bytes) -> bool:
    """Confirms a subscriber. Returns False without a request of that token within CONFIRM_US."""
    return await tx.value(_CONFIRM, hashed=token_hash, now=tx.now) is not None


async def delete_by_token(tx: Tx, token_hash: bytes) -> None:
    await tx.execute(_DELETE_BY_TOKEN, hashed=token_hash)


async def delete_subscriber(tx: Tx, org: int, page: int, uid: UUID) -> str | None:
    """Deletes a subscriber of the page. Returns its kind, None if it does not exist."""
    kind: str | None = await tx.value(_DELETE, org=org, page=page, uid=uid)
    return kind


async def record_bounce(tx: Tx, org: int, subscriber: int) -> tuple[int, bool] | None:
    """Returns the consecutive bounces and whether sending is suspended, None if deleted."""
    found = await tx.row(_BOUNCE, org=org, id=subscriber, now=tx.now)
    return None if found is None else (found[0], found[1])


async def record_reached(tx: Tx, org: int, subscriber: int) -> None:
    await tx.execute(_REACHED, org=org, id=subscriber)


async def purge_unconfirmed(tx: Tx) -> None:
    """Deletes expired unconfirmed subscribers and expired request records."""
    await tx.execute(_DROP_UNCONFIRMED, now=tx.now)
    await tx.execute(_DROP_REQUESTS, now=tx.now)
