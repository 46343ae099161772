"""What carries a message to people: a file a service, each with its `SPEC` and one `send`.

A sender says where it takes a message and what of that is secret; it goes out by the one guarded
way, and ends in `Delivered` or in `NotDelivered` with a bounded reason.
"""

from collections.abc import Mapping
from types import ModuleType
from typing import Final

import trio

from ..failure import Failed, Unobtainable
from . import apprise, discord, email, ntfy, opsgenie, pagerduty, slack, teams, telegram, webhook
from .delivery import SEND_SECONDS, Delivered, Means, NotDelivered, Verdict, renamed
from .message import Message
from .settings import ChannelSpec

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
SPECS: Final[Mapping[str, ChannelSpec]] = {name: sender.SPEC for name, sender in _SENDERS.items()}


async def deliver(
    kind: str, message: Message, config: Mapping[str, str], means: Means
) -> Delivered:
    """One attempt, `SEND_SECONDS` at most. `NotDelivered` says why not, and whether to try again;
    `config` is whole, its secrets opened, and was held against the kind's SPEC."""
    sender = _SENDERS[kind]
    given = SPECS[kind].with_defaults(config)
    with trio.move_on_after(SEND_SECONDS):
        try:
            delivered: Delivered = await sender.send(message, given, means)
        except (Failed, Unobtainable) as failure:
            raise renamed(failure) from None
        return delivered
    raise NotDelivered(Verdict.RETRY, "timeout")
