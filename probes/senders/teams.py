"""Microsoft Teams, by a workflow's webhook for adaptive cards. It has no replies.

Texts are runs of rich text, which Teams does not interpret.
"""

from typing import Any, Final

from .channel_spec import ChannelSetting, ChannelSpec, Config, ValueForm
from .message import Message, NotificationStatus, body_lines, title_line
from .send_result import Delivered, SendContext, post_json

_COLOURS: Final = {
    NotificationStatus.DOWN: "Attention",
    NotificationStatus.RECOVERED: "Good",
    NotificationStatus.TEST: "Default",
}

SPEC: Final = ChannelSpec(
    type="teams",
    help="An adaptive card by a workflow of Microsoft Teams.",
    settings=(
        ChannelSetting(
            name="url",
            help="The workflow's webhook URL; anyone with it can post",
            form=ValueForm.URL,
            required=True,
            secret=True,
        ),
    ),
)


def document(message: Message) -> dict[str, Any]:
    card: dict[str, Any] = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [
            _text(
                title_line(message),
                weight="Bolder",
                size="Medium",
                color=_COLOURS[message.status],
            ),
            *(_text(line) for line in body_lines(message)),
        ],
    }
    if message.link:
        card["actions"] = [{"type": "Action.OpenUrl", "title": "Open", "url": message.link}]
    return {
        "type": "message",
        "attachments": [
            {
                "contentType": "application/vnd.microsoft.card.adaptive",
                "contentUrl": None,
                "content": card,
            }
        ],
    }


def _text(text: str, **style: str) -> dict[str, Any]:
    return {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": text, **style}]}


async def send(message: Message, config: Config, means: SendContext) -> Delivered:
    await post_json(means, config["url"], document(message))
    return Delivered()
