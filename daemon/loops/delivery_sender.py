"""Sender of one event to its destination. Returns the outcome; raises only cancellation.

A fault in an event is an outcome of that event alone, like a refusal by the recipient.
"""

import logging
from dataclasses import replace
from typing import Final

from ...probes.senders.answer_buttons import AnswerButtons
from ...probes.senders.deliver import deliver, deliver_signed, deliver_to_person
from ...probes.senders.message import Message, MessageSeverity, NotificationStatus, one_line
from ...probes.senders.send_result import NotDelivered, SendContext, SendFailure
from ...storage.core.instant import SECOND
from ...storage.engine.keyring import CannotOpen, Keyring
from ...storage.incidents.transactions.answer_message import answer_token
from ...storage.notifications.rules.delivery_retry import DeliveryOutcome
from ...storage.notifications.rules.notification import BadPayload, Topic, link_of, page_of
from ...storage.notifications.transactions import (
    channel_secrets as settings_of_channel,
)
from ...storage.notifications.transactions import (
    edit_webhooks,
)
from ...storage.notifications.transactions.lease_deliveries import LeasedDelivery
from .subscriber_sender import SubscriberDelivery, is_their_no

log = logging.getLogger("leadline.delivery_sender")

# Kinds in the metrics; channels are counted by their type.
INCIDENT_WEBHOOK: Final = "incident_webhook"
STATUS_PAGE: Final = "status_page"
THREAD_LONGEST: Final = 200
REASON_LONGEST: Final = 200


def kind_of(delivery: LeasedDelivery) -> str:
    if delivery.channel is not None:
        return delivery.channel.type
    if delivery.event.page is not None:
        return STATUS_PAGE
    if delivery.subscriber is not None:
        return f"subscriber_{delivery.subscriber.kind}"
    return INCIDENT_WEBHOOK


async def carry(
    delivery: LeasedDelivery, keyring: Keyring, means: SendContext, base_url: str
) -> DeliveryOutcome:
    """Makes one attempt to send an event, within the time limit of the sender."""
    try:
        external_id = await _send(delivery, keyring, means, base_url)
    except NotDelivered as why:
        wait = (why.retry_after or 0) * SECOND
        reason = one_line(why.reason, REASON_LONGEST) or "not_delivered"
        is_over = delivery.subscriber is not None and is_their_no(delivery.subscriber, why)
        return DeliveryOutcome(reason, wait, is_over=is_over)
    except CannotOpen:
        return DeliveryOutcome("decrypt_failed")
    except BadPayload as fault:
        _report(delivery, "an event cannot be read", str(fault))
        return DeliveryOutcome("bad_payload", is_ours=True)
    except Exception as bug:
        # A fault in one event must not end the delivery loop.
        _report(delivery, "sender raised an exception", repr(bug))
        return DeliveryOutcome("internal_error", is_ours=True)
    return DeliveryOutcome(external_id=one_line(external_id, THREAD_LONGEST))


async def _send(
    delivery: LeasedDelivery, keyring: Keyring, means: SendContext, base_url: str
) -> str:
    event = delivery.event
    if delivery.subscriber is not None:
        await SubscriberDelivery(keyring, means, base_url).carry(event, delivery.subscriber)
        return ""
    if delivery.webhook is not None:
        secret = edit_webhooks.opened(delivery.webhook, keyring)
        body = event.payload.encode()
        await deliver_signed(delivery.webhook.url, secret, event.event, str(event.uid), body, means)
        return ""
    assert delivery.channel is not None, "a leased delivery has a destination"
    config = settings_of_channel.opened(delivery.channel, keyring)
    if settings_of_channel.is_broken(delivery.channel, config):
        raise NotDelivered(SendFailure.REFUSED, "bad_secret")
    message = _message(delivery, base_url)
    if delivery.channel.contact_method is not None:
        message = _answerable(delivery, message, keyring, means, base_url)
    send = deliver if delivery.channel.contact_method is None else deliver_to_person
    return (await send(delivery.channel.type, message, config, means)).thread


def _answerable(
    delivery: LeasedDelivery, message: Message, keyring: Keyring, means: SendContext, base_url: str
) -> Message:
    """Returns the message with the link and the buttons by which a person answers a page."""
    event = delivery.event
    if event.topic != Topic.INCIDENT or message.status is not NotificationStatus.DOWN:
        return message
    token = answer_token(event.uid, keyring)
    if not token or not base_url:
        return message
    buttons = AnswerButtons(
        token,
        event.uid.hex,
        link_of(base_url, f"/api/v1/public/answers/{token}"),
        link_of(base_url, f"/api/v1/public/calls/{token}"),
        slack=means.slack_buttons,
        telegram=means.telegram_buttons,
    )
    return replace(message, answer=link_of(base_url, f"/answer/{token}"), buttons=buttons)


def _message(delivery: LeasedDelivery, base_url: str) -> Message:
    event, page = delivery.event, page_of(delivery.event.payload)
    return Message(
        id=str(event.uid),
        key=str(event.thread),
        event=page.event,
        status=NotificationStatus(page.status),
        title=page.title,
        severity=MessageSeverity(page.severity),
        lines=page.lines,
        link=link_of(base_url, page.path),
        since=page.since,
        why=page.why,
        conditions=page.conditions,
        thread=event.thread_external_id,
        runbook_url=page.runbook_url,
    )


def _report(delivery: LeasedDelivery, message: str, cause: str) -> None:
    log.error(message, extra={"outbox_event": str(delivery.event.uid), "cause": cause[:500]})
