"""Request of a subscription: asks the address to confirm it.

The response does not reveal whether the address is known. The confirmation request is written to
the outbox in the same transaction, at most once per MAIL_PAUSE_US and address, for all pages
together.
"""

import os

import msgspec
from uuid_utils.compat import uuid7

from ...accounts.transactions.authorize import NOT_FOUND
from ...core.refusal import Refused
from ...core.token import RANDOM_BYTES, TokenKind, digest, token_from
from ...engine.keyring import Keyring
from ...engine.pools import Tx
from ...notifications.rules.notification import Topic
from ...notifications.tables import outbox
from ..queries.status_pages import StatusPageRow, select_bindings
from ..rules.status_page import Visibility
from ..rules.subscription import (
    CONFIRM_EVENT,
    SUBSCRIBERS_OF_PAGE_MOST,
    WEBHOOKS_ASKED_MOST,
    SubscriberKind,
    SubscriptionRequest,
    address_hash,
    address_key,
    asked_faults,
)
from ..tables import status_pages, subscribers
from .subscription_tokens import token_place


async def subscribe(
    tx: Tx, page: StatusPageRow, asked: SubscriptionRequest, keyring: Keyring
) -> None:
    """Requests a subscription.

    Raises:
        Refused not_found if the page is deleted or internal; invalid with the field;
        subscriber_quota; rate_limited if too many requests to webhooks of the page are undelivered;
        encryption_key_missing.
    """
    for field, fault in asked_faults(asked):
        raise Refused("invalid", field, fault)
    # The lock prevents deletion and serializes the counts.
    row = await status_pages.lock_status_page(tx, page.uid)
    if row is None or row.visibility == Visibility.INTERNAL:
        raise Refused(NOT_FOUND)
    if asked.components is not None:
        known = {binding.uid for binding in await select_bindings(tx, page)}
        if not asked.components <= known:
            raise Refused("invalid", "components", "must be components of the page")
    # A known address is refused too, otherwise the response would reveal it.
    if await subscribers.count_subscribers(tx, row.org, row.id) >= SUBSCRIBERS_OF_PAGE_MOST:
        raise Refused("subscriber_quota")
    if (
        asked.kind is not SubscriberKind.MAIL
        and await subscribers.count_asked_webhooks(tx, row.org, row.id, WEBHOOKS_ASKED_MOST)
        >= WEBHOOKS_ASKED_MOST
    ):
        raise Refused("rate_limited")
    if not await subscribers.may_write_to(tx, address_hash(asked.kind, asked.address)):
        return
    uid = uuid7()
    token = token_from(TokenKind.SUBSCRIPTION, os.urandom(RANDOM_BYTES))
    destination = await subscribers.ask_subscriber(
        tx,
        org=row.org,
        page=row.id,
        uid=uid,
        kind=asked.kind,
        address=asked.address,
        address_key=address_key(asked.kind, asked.address),
        components=None if asked.components is None else sorted(asked.components),
        language=asked.language,
        hashed=digest(token),
        sealed=keyring.seal(token.encode(), token_place(uid)),
    )
    # A separate thread: an earlier request that could not be sent does not delay it.
    stream = uuid7()
    await outbox.lock_shared_destinations(tx, row.org, [destination])
    await outbox.insert_events(
        tx,
        row.org,
        row.project,
        Topic.SUBSCRIPTION,
        stream,
        stream,
        CONFIRM_EVENT,
        msgspec.json.encode({"page": row.title}).decode(),
        [destination],
    )
