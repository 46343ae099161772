"""Sender of status page updates to subscribers: queues and sends one event each.

An unconfirmed subscriber receives only the confirmation request. Permanent refusals of an address
are counted; after too many of them the subscriber is disabled.
"""

import logging
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Final

import msgspec

from ...http.status_pages.public.emails import (
    confirm_chat,
    confirm_document,
    confirm_letter,
    notice_chat,
    notice_document,
    notice_letter,
)
from ...http.status_pages.public.language import Reader, speaking
from ...http.status_pages.public.urls import Addresses, addresses_at
from ...probes.senders.send_result import NotDelivered, SendContext, SendFailure
from ...probes.senders.subscriber_chat import ChatMessage, slack_document, teams_document
from ...probes.senders.subscriber_mail import send_letter
from ...probes.senders.untrusted_webhook import post_to_stranger
from ...storage.core.refusal import Unavailable
from ...storage.engine.keyring import Keyring
from ...storage.engine.pools import Pool
from ...storage.notifications.queries.delivery_addresses import SubscriberRow
from ...storage.notifications.rows import Leased
from ...storage.notifications.rules.delivery_retry import DeliveryOutcome
from ...storage.notifications.rules.notification import BadPayload
from ...storage.notifications.transactions.lease_deliveries import LeasedDelivery
from ...storage.status_pages.rules.page_language import ENGLISH
from ...storage.status_pages.rules.status_page import Visibility
from ...storage.status_pages.rules.subscription import (
    CHATS,
    CONFIRM_EVENT,
    SubscriberKind,
    SubscriberNotice,
)
from ...storage.status_pages.transactions.confirm_subscription import confirm
from ...storage.status_pages.transactions.fan_out import LeaseLost, pass_on
from ...storage.status_pages.transactions.note_bounce import record_bounce, record_reached
from ...storage.status_pages.transactions.subscription_tokens import opened_page_token, opened_token

log = logging.getLogger("leadline.subscriber_sender")

# The page became internal, or no public address is configured: no update is sent.
NOT_PUBLIC: Final = "page_not_public"
_OURS: Final = "not_ready"
_NO_SUCH_PERSON: Final = "recipient_refused"


async def pass_on_all(pool: Pool, delivery: LeasedDelivery) -> DeliveryOutcome:
    """Queues an event of a status page for all its subscribers, from the stored position."""
    event, after = delivery.event, delivery.event.enqueued_through
    try:
        while True:
            ask = partial(pass_on, event=event, lease=delivery.lease, after=after)
            through = await pool.transact("enqueue_subscriber_events", ask)
            if through is None:
                return DeliveryOutcome()
            after = through
    except LeaseLost:
        return DeliveryOutcome("lease_lost", is_ours=True)
    except BadPayload as fault:
        extra = {"outbox_event": str(event.uid), "cause": str(fault)[:500]}
        log.error("status page content cannot be read", extra=extra)
        return DeliveryOutcome("bad_payload", is_ours=True)
    except Unavailable:
        return DeliveryOutcome(_OURS, is_ours=True)


def is_their_no(to: SubscriberRow, why: NotDelivered) -> bool:
    """Returns whether the subscriber refuses permanently or may not be notified any more.

    If a mail server rejects our credentials or our content, the recipient did not refuse.
    """
    if why.reason == NOT_PUBLIC:
        return True
    if to.kind == SubscriberKind.MAIL:
        return why.verdict is SendFailure.REFUSED and why.reason.startswith(_NO_SUCH_PERSON)
    return why.verdict is not SendFailure.RETRY


@dataclass(frozen=True, slots=True)
class SubscriberDelivery:
    """Sends an event to a subscriber. Raises: NotDelivered, CannotOpen, BadPayload."""

    keyring: Keyring
    means: SendContext
    base_url: str

    async def carry(self, event: Leased, to: SubscriberRow) -> None:
        base = self.base_url.rstrip("/")
        if to.page_visibility == Visibility.INTERNAL or not base:
            raise NotDelivered(SendFailure.BLOCKED, NOT_PUBLIC)
        token = opened_token(to, self.keyring)
        opens = opened_page_token(to, self.keyring)
        page = addresses_at(base, to.page_slug, opens, to.page_domain)
        with speaking(Reader(language=to.language or ENGLISH, chosen=to.language)):
            if event.event == CONFIRM_EVENT:
                await self._ask(event, to, page, token)
            else:
                await self._report(event, to, page, token)

    async def _ask(self, event: Leased, to: SubscriberRow, page: Addresses, token: str) -> None:
        if to.kind == SubscriberKind.MAIL:
            letter = confirm_letter(str(event.uid), to.address, to.page_title, page.base, token)
            await send_letter(letter, self.means)
            return
        if to.kind in CHATS:
            await self._post(event, to, confirm_chat(to.page_title, page.base, token))
            return
        challenge = sha256(f"{event.uid} {token}".encode()).hexdigest()
        document = confirm_document(to.page_title, challenge, page, token)
        uid = str(event.uid)
        await post_to_stranger(to.address, event.event, uid, document, self.means, echo=challenge)

    async def _report(self, event: Leased, to: SubscriberRow, page: Addresses, token: str) -> None:
        notice, uid = _notice_of(event), str(event.uid)
        if to.kind == SubscriberKind.MAIL:
            letter = notice_letter(uid, to.address, to.page_title, notice, page, token)
            await send_letter(letter, self.means)
            return
        if to.kind in CHATS:
            await self._post(event, to, notice_chat(to.page_title, notice, page, token))
            return
        document = notice_document(to.page_title, notice, page, token)
        await post_to_stranger(to.address, event.event, uid, document, self.means)

    async def _post(self, event: Leased, to: SubscriberRow, message: ChatMessage) -> None:
        is_slack = to.kind == SubscriberKind.SLACK
        document = slack_document(message) if is_slack else teams_document(message)
        await post_to_stranger(to.address, event.event, str(event.uid), document, self.means)


async def record_end(
    pool: Pool,
    keyring: Keyring,
    delivery: LeasedDelivery,
    outcome: DeliveryOutcome,
    max_attempts: int,
) -> DeliveryOutcome:
    """Applies the outcome of a delivery to the subscription.

    If the change cannot be stored, the returned outcome makes the outbox retry the event.
    """
    to = delivery.subscriber
    assert to is not None, "a subscriber event has a subscriber"
    is_refusal = outcome.is_over or _is_missed_notice(delivery, to, outcome, max_attempts)
    try:
        if is_refusal and outcome.reason != NOT_PUBLIC:
            if await pool.transact("record_bounce", lambda tx: record_bounce(tx, to)):
                extra = {"subscriber": str(to.uid), "reason": outcome.reason}
                log.warning("subscriber disabled: its address refuses notifications", extra=extra)
        elif outcome.is_delivered:
            if to.bounces:
                await pool.transact("record_subscriber_delivery", lambda tx: record_reached(tx, to))
            if to.kind == SubscriberKind.WEBHOOK and delivery.event.event == CONFIRM_EVENT:
                token = opened_token(to, keyring)
                await pool.transact("confirm_webhook", lambda tx: confirm(tx, token))
    except Unavailable:
        return DeliveryOutcome(_OURS, is_ours=True)
    return outcome


def _is_missed_notice(
    delivery: LeasedDelivery, to: SubscriberRow, outcome: DeliveryOutcome, max_attempts: int
) -> bool:
    """Returns whether the last attempt to send a notice to a webhook or a chat failed."""
    return (
        to.kind != SubscriberKind.MAIL
        and delivery.event.event != CONFIRM_EVENT
        and not outcome.is_delivered
        and not outcome.is_ours
        and delivery.event.attempts >= max_attempts
    )


def _notice_of(event: Leased) -> SubscriberNotice:
    try:
        return msgspec.json.decode(event.payload, type=SubscriberNotice)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise BadPayload(str(error)) from error
