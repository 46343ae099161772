"""Microsoft Teams, by a workflow's webhook for adaptive cards. It has no replies.

Texts are runs of rich text, which Teams does not interpret.
"""

from collections.abc import Sequence
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
    body = [
        card_text(
            title_line(message),
            weight="Bolder",
            size="Medium",
            color=_COLOURS[message.status],
        ),
        *(card_text(line) for line in body_lines(message)),
    ]
    link = {"type": "Action.OpenUrl", "title": "Open", "url": message.link}
    return card_document(body, [link] if message.link else [])


def card_document(body: Sequence[Any], actions: Sequence[Any]) -> dict[str, Any]:
    """Returns the message of an adaptive card."""
    card: dict[str, Any] = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": list(body),
    }
    if actions:
        card["actions"] = list(actions)
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


def card_text(text: str, **style: str) -> dict[str, Any]:
    return {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": text, **style}]}


async def send(message: Message, config: Config, means: SendContext) -> Delivered:
    await post_json(means, config["url"], document(message))
    return Delivered()
