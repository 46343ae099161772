"""Senders of notifications, one module per service with its `SPEC` and a `send` function.

A SPEC declares the destination of a channel and its secrets. A sender uses the guarded egress. It
returns `Delivered` or raises `NotDelivered` with a bounded reason.
"""

from collections.abc import Awaitable, Mapping
from types import ModuleType
from typing import Final

import trio

from ..check.failure import LocalFailure, TargetFailure
from . import apprise, discord, email, ntfy, opsgenie, pagerduty, slack, teams, telegram, webhook
from .channel_spec import ChannelSpec, with_templates
from .message import Message
from .message_template import templated
from .personal import PERSONAL_SENDERS, PERSONAL_SPECS
from .send_result import SEND_SECONDS, Delivered, NotDelivered, SendContext, SendFailure, renamed

_SENDERS: Final[Mapping[str, ModuleType]] = {
    sender.SPEC.type: sender
    for sender in (
        webhook,
        email,
        slack,
        discord,
        teams,
        telegram,
        ntfy,
        pagerduty,
        opsgenie,
        apprise,
    )
}

# A webhook sends the parts of the message, so its receiver words it.
SPECS: Final[Mapping[str, ChannelSpec]] = {
    name: sender.SPEC if sender is webhook else with_templates(sender.SPEC)
    for name, sender in _SENDERS.items()
}


async def deliver(
    kind: str, message: Message, config: Mapping[str, str], means: SendContext
) -> Delivered:
    """Makes one attempt, within `SEND_SECONDS`.

    `config` is complete, with decrypted secrets, and was validated by the SPEC.
    Raises: `NotDelivered` with the reason, and whether to retry.
    """
    given = SPECS[kind].with_defaults(config)
    worded = templated(message, given)
    return await _within_bounds(_SENDERS[kind].send(worded, given, means))


async def deliver_to_person(
    kind: str, message: Message, config: Mapping[str, str], means: SendContext
) -> Delivered:
    """Delivers to a contact method like `deliver`."""
    given = PERSONAL_SPECS[kind].with_defaults(config)
    return await _within_bounds(PERSONAL_SENDERS[kind](message, given, means))


async def deliver_signed(
    url: str, secret: str, event: str, uid: str, body: bytes, means: SendContext
) -> Delivered:
    """Delivers a given body like `deliver`, for the webhooks of organizations."""
    return await _within_bounds(webhook.send_signed(url, secret, event, uid, body, means))


async def _within_bounds(sending: Awaitable[Delivered]) -> Delivered:
    with trio.move_on_after(SEND_SECONDS):
        try:
            return await sending
        except (TargetFailure, LocalFailure) as failure:
            raise renamed(failure) from None
    raise NotDelivered(SendFailure.RETRY, "timeout")
