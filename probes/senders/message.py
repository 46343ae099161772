"""What people are told, once, in parts that every service's sender puts in its own words.

Pure. No part is markup: a sender escapes what its service would interpret.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

TITLE_LONGEST: Final = 200
LINES_MOST: Final = 20
LINE_LONGEST: Final = 500


class NotificationStatus(StrEnum):
    DOWN = "down"
    RECOVERED = "recovered"
    TEST = "test"


class MessageSeverity(StrEnum):
    """As an incident's impact."""

    NONE = "none"
    MINOR = "minor"
    MAJOR = "major"
    CRITICAL = "critical"


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """`id` is the same over all tries; `key` over all messages of one incident; `thread` is what
    the service called the first of them (`Delivered.thread`), empty where it is not known.
    `since` is µs since the epoch.
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
    thread: str = ""


def body_lines(message: Message) -> list[str]:
    """Everything but title and link, a line each, in plain text and within bounds."""
    lines = [one_line(line, LINE_LONGEST) for line in message.lines[:LINES_MOST]]
    if message.why:
        lines.append(one_line(f"Why: {message.why}", LINE_LONGEST))
    if message.since is not None:
        lines.append(f"Since {instant_text(message.since)}")
    return lines


def title_line(message: Message) -> str:
    """Never empty: no service takes a message without words."""
    return one_line(message.title, TITLE_LONGEST) or "Leadline"


def plain_text(message: Message, longest: int) -> str:
    """All of it as text, the title first; the link is never cut."""
    text = "\n".join([title_line(message), *body_lines(message)])
    tail = f"\n{message.link}" if message.link else ""
    return clipped(text, longest - len(tail)) + tail


def one_line(text: str, longest: int) -> str:
    """Without control characters or halves of characters, on one line. Of a text that is longer by
    far, what is beyond is not even looked at."""
    shown = "".join(" " if _is_odd(char) else char for char in text[: 2 * longest])
    return clipped(" ".join(shown.split()), longest)


def clipped(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: max(longest - 1, 0)] + "…"


def instant_text(at_us: int) -> str:
    """As people and machines read it: 2026-01-05T00:00:00Z."""
    return datetime.fromtimestamp(at_us // 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _is_odd(char: str) -> bool:
    return char < " " or "\x7f" <= char <= "\x9f" or "\ud800" <= char <= "\udfff"
