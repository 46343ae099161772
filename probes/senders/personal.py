"""Contact methods of people: the kinds, their specs and their senders."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Final

from . import email, ntfy, telegram, webhook
from .channel_spec import ChannelSpec, Config, SettingFault
from .direct_message import MATTERMOST, SLACK, send_mattermost, send_slack
from .message import Message
from .phone import SMS, VOICE, send_sms, send_voice
from .send_result import Delivered, SendContext

Sender = Callable[[Message, Config, SendContext], Awaitable[Delivered]]


def _one_address(config: Config) -> list[SettingFault]:
    if len(email.addresses(config.get("to", ""))) > 1:
        return [SettingFault("config.to", "must be one e-mail address")]
    return email.SPEC.rule(config)


_EMAIL: Final = replace(
    email.SPEC,
    settings=(replace(email.SPEC.settings[0], help="Your address", longest=email.ADDRESS_LONGEST),),
    rule=_one_address,
)
_KINDS: Final[Mapping[str, tuple[ChannelSpec, Sender]]] = {
    "email": (_EMAIL, email.send),
    "ntfy": (ntfy.SPEC, ntfy.send),
    "telegram": (telegram.SPEC, telegram.send),
    "slack": (SLACK, send_slack),
    "mattermost": (MATTERMOST, send_mattermost),
    "webhook": (webhook.SPEC, webhook.send),
    "sms": (SMS, send_sms),
    "voice": (VOICE, send_voice),
}
# A person is in many projects, whose secrets are not those of the person.
PERSONAL_SPECS: Final[Mapping[str, ChannelSpec]] = {
    kind: replace(one[0], takes_references=False) for kind, one in _KINDS.items()
}
PERSONAL_SENDERS: Final[Mapping[str, Sender]] = {kind: one[1] for kind, one in _KINDS.items()}
