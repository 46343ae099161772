"""SMS and voice calls, through the gateway of the installation."""

import re
from dataclasses import replace
from typing import Final, Literal

from .channel_spec import ChannelSetting, ChannelSpec, Config
from .gateway import call_gateway, request_of
from .gateway_settings import PHONE
from .message import Message, body_lines, clipped, title_line
from .send_result import Delivered, NotDelivered, SendContext, SendFailure

# Three concatenated SMS of the 7-bit alphabet.
SMS_LONGEST: Final = 459
VOICE_LONGEST: Final = 600
# Kinds that need the gateway.
PHONE_KINDS: Final = frozenset({"sms", "voice"})

_NUMBER: Final = ChannelSetting(
    name="to",
    help="Phone number with country code, such as +4930123456",
    required=True,
    pattern=PHONE.pattern,
    hint="must be a phone number such as +4930123456",
    longest=16,
)
SMS: Final = ChannelSpec(
    type="sms", help="An SMS through the gateway of this installation.", settings=(_NUMBER,)
)
VOICE: Final = ChannelSpec(
    type="voice", help="A call through the gateway of this installation.", settings=(_NUMBER,)
)


def plain_number(text: str) -> str:
    """Returns a typed number as + and digits: without separators and a trunk (0), 00 as +."""
    found = re.sub(r"\(0\)", "", text)
    found = re.sub(r"[\s().\-/]", "", found)
    return f"+{found[2:]}" if found.startswith("00") else found


def sms_text(message: Message) -> str:
    """Returns title, links and then as many lines as fit. The links are never truncated."""
    head = f"{title_line(message)}\n{message.link}" if message.link else title_line(message)
    if message.answer:
        head += f"\nAnswer: {message.answer}"
    rest = "\n".join(body_lines(replace(message, answer="")))
    return clipped(f"{head}\n{rest}" if rest else head, SMS_LONGEST)


def voice_text(message: Message) -> str:
    """Returns the text to be said: the title and the reason, without URLs."""
    lines = [*message.lines, *([message.why] if message.why else [])]
    return clipped(". ".join(["Leadline", title_line(message), *lines]), VOICE_LONGEST)


async def send_sms(message: Message, config: Config, means: SendContext) -> Delivered:
    return await _send("sms", sms_text(message), config, means)


async def send_voice(message: Message, config: Config, means: SendContext) -> Delivered:
    call_url = message.buttons.call_url if message.buttons is not None else ""
    return await _send("voice", voice_text(message), config, means, call_url)


async def _send(
    service: Literal["sms", "voice"],
    text: str,
    config: Config,
    means: SendContext,
    call_url: str = "",
) -> Delivered:
    gateway = means.gateway
    if gateway is None or not gateway.can(service):
        raise NotDelivered(SendFailure.RETRY, "gateway_unavailable")
    await call_gateway(request_of(gateway, service, config["to"], text, call_url), means)
    return Delivered()
