"""Slack, and services that accept its incoming webhooks.

A webhook cannot reply in a thread; only a bot can. The message is rich text, which Slack does not
interpret. The fallback text, which Slack interprets and other services show, has its three special
characters escaped.
"""

from dataclasses import replace
from typing import Any, Final

from .answer_buttons import LABELS
from .channel_spec import ChannelSetting, ChannelSpec, Config, ValueForm
from .message import Message, body_lines, plain_text, title_line
from .send_result import Delivered, SendContext, post_json

TEXT_LONGEST: Final = 3_000

SPEC: Final = ChannelSpec(
    type="slack",
    help="A message to an incoming webhook of Slack, or of a compatible service.",
    settings=(
        ChannelSetting(
            name="url",
            help="The incoming webhook's URL; anyone with it can post",
            form=ValueForm.URL,
            required=True,
            secret=True,
        ),
    ),
)


def escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def document(message: Message) -> dict[str, Any]:
    elements: list[dict[str, Any]] = [
        {"type": "text", "text": title_line(message), "style": {"bold": True}}
    ]
    elements += [{"type": "text", "text": f"\n{line}"} for line in body_lines(_plain(message))]
    if message.answer:
        elements.append({"type": "text", "text": "\n"})
        elements.append({"type": "link", "url": message.answer, "text": "Answer"})
    if message.link:
        elements.append({"type": "text", "text": "\n"})
        elements.append({"type": "link", "url": message.link})
    section = {"type": "rich_text_section", "elements": elements}
    return {
        "text": escaped(plain_text(message, TEXT_LONGEST)),
        "unfurl_links": False,
        "blocks": [{"type": "rich_text", "elements": [section]}, *_buttons(message)],
    }


def _buttons(message: Message) -> list[dict[str, Any]]:
    """Returns the block of the buttons, if the installation can verify who presses them."""
    buttons = message.buttons
    if buttons is None or not buttons.slack:
        return []
    elements = [
        {
            "type": "button",
            "action_id": action.value,
            "value": buttons.token,
            "text": {"type": "plain_text", "text": label},
        }
        for action, label in LABELS.items()
    ]
    return [{"type": "actions", "elements": elements}]


def _plain(message: Message) -> Message:
    """Returns the message without the link to answer, which the rich text has as a link."""
    return replace(message, answer="")


async def send(message: Message, config: Config, means: SendContext) -> Delivered:
    await post_json(means, config["url"], document(message))
    return Delivered()
