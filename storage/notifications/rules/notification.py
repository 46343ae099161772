"""Notifications for people and machines, as stored until delivery.

A page is a notification for people, formatted by the sender of each service. Its link is completed
at the send, since the URL of the console is configuration. The document for machines is built by
the caller; it contains its event and its sequence number within the incident.
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
# The escape of U+0000 in JSON, except after an escaped backslash.
_NUL: Final = re.compile(r"((?<!\\)(?:\\\\)*)\\u0000")


class Topic(StrEnum):
    """Subject of an event: an incident, a status change without one, or a subscription."""

    INCIDENT = "incident_event"
    MONITOR = "monitor_transition"
    SUBSCRIPTION = "subscription"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """A page.

    `event` is incident.opened, incident.escalated, incident.reminder or incident.resolved. Without
    an incident it is monitor.down, monitor.reminder or monitor.recovered. For a budget it is
    budget.burning, budget.reminder or budget.recovered. `status` and `severity` are values of
    STATUSES and SEVERITIES; `path` begins with a slash. `conditions` are the failed conditions with
    their values; they can contain observed content, so a page is never public. `runbook_url` is the
    URL of the instructions, empty for none.
    """

    event: str
    status: str
    severity: str
    title: str
    lines: tuple[str, ...]
    why: str
    since: Instant | None
    path: str
    conditions: tuple[str, ...] = ()
    runbook_url: str = ""

    def __post_init__(self) -> None:
        if self.status not in STATUSES or self.severity not in SEVERITIES:
            raise ValueError(f"no page has status {self.status!r}, severity {self.severity!r}")


class BadPayload(Exception):
    """The stored payload is unreadable: another version wrote it, or it was modified."""


def page_text(page: Notification) -> str:
    """Encodes a page as JSON."""
    return _storable(msgspec.json.encode(page).decode())


def page_of(text: str) -> Notification:
    """Decodes a page. Raises: BadPayload."""
    try:
        return msgspec.json.decode(text, type=Notification)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise BadPayload(str(error)) from error


def document_text(event: str, payload: Mapping[str, Any]) -> str:
    """Encodes the document for webhooks. Raises: ValueError without `seq`, the order key."""
    if not isinstance(payload.get("seq"), int):
        raise ValueError("events of webhooks have a seq")
    return _storable(msgspec.json.encode({**payload, "event": event}).decode())


def link_of(base_url: str, path: str) -> str:
    """Returns the link; empty if the URL of the console is not configured."""
    return base_url.rstrip("/") + path if base_url else ""


def _storable(text: str) -> str:
    """Replaces U+0000, the only character that PostgreSQL cannot store."""
    return _NUL.sub(r"\1\\ufffd", text)


NOTICE_EVENT: Final = "status_page.incident"
