"""What people and machines are told of, as it is kept until it is delivered.

A page is told to people, in the words of whatever service carries it; its link is completed when it
is sent, since where the console stands is the configuration's to say. What machines are told is a
document of the caller's, which names its event and its place in the order of its incident.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import msgspec

from ...core.instant import Instant

STATUSES: Final = frozenset({"down", "recovered"})
SEVERITIES: Final = frozenset({"none", "minor", "major", "critical"})
# Spelt as JSON does, and not the end of an escaped backslash.
_NUL: Final = re.compile(r"((?<!\\)(?:\\\\)*)\\u0000")


class Topic(StrEnum):
    """What an event belongs to: an incident, a monitor's change without one, or somebody who wants
    to be told of a status page."""

    INCIDENT = "incident_event"
    MONITOR = "monitor_transition"
    SUBSCRIPTION = "subscription"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """`event` is incident.opened, incident.escalated, incident.reminder or incident.resolved, and
    monitor.down, monitor.reminder or monitor.recovered where no incident was opened; of a budget
    budget.burning, budget.reminder or budget.recovered. `status` and `severity` are words of
    STATUSES and SEVERITIES, `path` begins with a slash.
    """

    event: str
    status: str
    severity: str
    title: str
    lines: tuple[str, ...]
    why: str
    since: Instant | None
    path: str

    def __post_init__(self) -> None:
        if self.status not in STATUSES or self.severity not in SEVERITIES:
            raise ValueError(f"no page has status {self.status!r}, severity {self.severity!r}")


class BadPayload(Exception):
    """What is kept cannot be read: another version wrote it, or somebody changed it."""


def page_text(page: Notification) -> str:
    """The page as JSON."""
    return _storable(msgspec.json.encode(page).decode())


def page_of(text: str) -> Notification:
    """The page that was written; BadPayload where it is none."""
    try:
        return msgspec.json.decode(text, type=Notification)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise BadPayload(str(error)) from error


def document_text(event: str, payload: Mapping[str, Any]) -> str:
    """What a webhook is sent, as JSON; ValueError without the `seq` that receivers order by."""
    if not isinstance(payload.get("seq"), int):
        raise ValueError("what is told to webhooks has a seq")
    return _storable(msgspec.json.encode({**payload, "event": event}).decode())


def link_of(base_url: str, path: str) -> str:
    """Empty where nobody said under which address the console is reached."""
    return base_url.rstrip("/") + path if base_url else ""


def _storable(text: str) -> str:
    """PostgreSQL keeps every character but one, which says nothing to anybody."""
    return _NUL.sub(r"\1\\ufffd", text)


NOTICE_EVENT: Final = "status_page.incident"
