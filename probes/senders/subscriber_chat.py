"""Message to a chat channel that subscribes to a status page: Slack or Microsoft Teams.

Its parts are rich text, which the services do not interpret, so that the text of a page cannot
mention people or hide a link.
"""

from dataclasses import dataclass
from typing import Any

from .slack import TEXT_LONGEST, escaped
from .teams import card_document, card_text


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMessage:
    """`links` are addresses with their texts, in order."""

    title: str
    paragraphs: tuple[str, ...]
    links: tuple[tuple[str, str], ...]


def slack_document(message: ChatMessage) -> dict[str, Any]:
    elements: list[dict[str, Any]] = [
        {"type": "text", "text": _cut(message.title), "style": {"bold": True}}
    ]
    elements += [{"type": "text", "text": _cut(f"\n{text}")} for text in message.paragraphs]
    for address, text in message.links:
        elements.append({"type": "text", "text": "\n"})
        elements.append({"type": "link", "url": address, "text": text})
    section = {"type": "rich_text_section", "elements": elements}
    fallback = "\n".join((message.title, *message.paragraphs))
    return {
        "text": escaped(_cut(fallback)),
        "unfurl_links": False,
        "blocks": [{"type": "rich_text", "elements": [section]}],
    }


def teams_document(message: ChatMessage) -> dict[str, Any]:
    body = [
        card_text(_cut(message.title), weight="Bolder", size="Medium"),
        *(card_text(_cut(text)) for text in message.paragraphs),
    ]
    links = [
        {"type": "Action.OpenUrl", "title": text, "url": address} for address, text in message.links
    ]
    return card_document(body, links)


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_LONGEST else f"{text[: TEXT_LONGEST - 1]}…"
