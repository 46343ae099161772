"""Notification content in parts that the sender of each service formats.

Pure. No part contains markup. A sender escapes the characters that its service interprets.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from .answer_buttons import AnswerButtons

TITLE_LONGEST: Final = 200
LINES_MOST: Final = 20
LINE_LONGEST: Final = 500


class NotificationStatus(StrEnum):
    DOWN = "down"
    RECOVERED = "recovered"
    TEST = "test"


class MessageSeverity(StrEnum):
    """Severity, with the values of an incident's impact."""

    NONE = "none"
    MINOR = "minor"
    MAJOR = "major"
    CRITICAL = "critical"


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """Content of one notification.

    `id` is the same for all attempts, and `key` for all messages of one incident. `thread` is the
    service's name of the first of them (`Delivered.thread`), empty if unknown. `since` is µs since
    the epoch. `conditions` are the failed conditions with their measured values. `runbook_url` is
    the URL of the instructions, or empty. `answer` is the URL by which the recipient answers,
    empty for none. `buttons` answer in a chat service, None without any.
    """

    id: str
    key: str
    event: str
    status: NotificationStatus
    title: str
    severity: MessageSeverity = MessageSeverity.NONE
    lines: tuple[str, ...] = ()
    link: str = ""
    since: int | None = None
    why: str = ""
    conditions: tuple[str, ...] = ()
    thread: str = ""
    runbook_url: str = ""
    # Both contain a credential.
    answer: str = field(default="", repr=False)
    buttons: AnswerButtons | None = field(default=None, repr=False)


def body_lines(message: Message) -> list[str]:
    """Returns all parts except title and link, one per line, as bounded plain text."""
    lines = [one_line(line, LINE_LONGEST) for line in message.lines[:LINES_MOST]]
    if message.answer:
        lines.append(f"Acknowledge, resolve or add a note: {message.answer}")
    if message.runbook_url:
        # Before the texts that can be long, so that no limit of a service truncates it.
        lines.append(one_line(f"Runbook: {message.runbook_url}", LINE_LONGEST))
    if message.why:
        lines.append(one_line(f"Why: {message.why}", LINE_LONGEST))
    lines += [
        one_line(f"Failed condition: {text}", LINE_LONGEST)
        for text in message.conditions[:LINES_MOST]
    ]
    if message.since is not None:
        lines.append(f"Since {instant_text(message.since)}")
    return lines


def title_line(message: Message) -> str:
    """Returns the title, never empty, because services refuse empty messages."""
    return one_line(message.title, TITLE_LONGEST) or "Leadline"


def plain_text(message: Message, longest: int) -> str:
    """Returns the message as text with the title first. The link is never truncated."""
    text = "\n".join([title_line(message), *body_lines(message)])
    tail = f"\n{message.link}" if message.link else ""
    return clipped(text, longest - len(tail)) + tail


def one_line(text: str, longest: int) -> str:
    """Returns the text on one line, without control characters and lone surrogates.

    At most twice `longest` characters are processed.
    """
    shown = "".join(" " if _is_odd(char) else char for char in text[: 2 * longest])
    return clipped(" ".join(shown.split()), longest)


def clipped(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: max(longest - 1, 0)] + "…"


def instant_text(at_us: int) -> str:
    """Returns the instant as text: 2026-01-05T00:00:00Z."""
    return datetime.fromtimestamp(at_us // 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _is_odd(char: str) -> bool:
    return char < " " or "\x7f" <= char <= "\x9f" or "\ud800" <= char <= "\udfff"
