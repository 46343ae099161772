"""Discord, by a webhook of a text channel.

Webhooks cannot reply, so a recovery is a separate message. Mentions are disabled, and Markdown
characters are escaped.
"""

import re
from typing import Any, Final

from .channel_spec import ChannelSetting, ChannelSpec, Config, ValueForm
from .message import Message, NotificationStatus, body_lines, title_line
from .send_result import Delivered, SendContext, post_json

# Limits of a Discord embed.
TITLE_LONGEST: Final = 256
DESCRIPTION_LONGEST: Final = 4_096

_COLOURS: Final = {
    NotificationStatus.DOWN: 0xC62828,
    NotificationStatus.RECOVERED: 0x2E7D32,
    NotificationStatus.TEST: 0x546E7A,
}
_MARKUP: Final = re.compile(r"([\\*_~`|>#\[\]()<@:\-])")

SPEC: Final = ChannelSpec(
    type="discord",
    help="A message by a webhook of a Discord channel.",
    settings=(
        ChannelSetting(
            name="url",
            help="The webhook's URL; anyone with it can post",
            form=ValueForm.URL,
            required=True,
            secret=True,
        ),
    ),
)


def escaped(text: str) -> str:
    return _MARKUP.sub(r"\\\1", text)


def document(message: Message) -> dict[str, Any]:
    text = "\n".join(body_lines(message))
    embed: dict[str, Any] = {
        "title": _within(title_line(message), TITLE_LONGEST),
        "description": _within(text, DESCRIPTION_LONGEST),
        "color": _COLOURS[message.status],
    }
    if message.link:
        embed["url"] = message.link
    return {"embeds": [embed], "allowed_mentions": {"parse": []}}


def _within(text: str, longest: int) -> str:
    """Returns the escaped text within the limit. Escape sequences are never split."""
    if len(whole := escaped(text)) <= longest:
        return whole
    pieces: list[str] = []
    left = longest - 1
    for char in text:
        piece = escaped(char)
        left -= len(piece)
        if left < 0:
            break
        pieces.append(piece)
    return "".join(pieces) + "…"


async def send(message: Message, config: Config, means: SendContext) -> Delivered:
    await post_json(means, config["url"], document(message))
    return Delivered()
