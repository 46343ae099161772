"""Outbox rows of notifications, written in the transaction of their cause.

Locks: the caller has locked the subject of the stream, an incident or the state of a monitor.
"""

from collections.abc import Collection, Mapping
from typing import Any
from uuid import UUID

from ...core.instant import Instant
from ...engine.pools import Tx
from ..rules.notification import NOTICE_EVENT, Notification, Topic, document_text, page_text
from ..tables import outbox

__all__ = [
    "Notification",
    "Topic",
    "enqueue_pages",
    "enqueue_status_page_events",
    "enqueue_to_notified_channels",
    "enqueue_webhooks",
]


async def enqueue_webhooks(
    tx: Tx, org: int, project: int, incident: UUID, event: str, payload: Mapping[str, Any]
) -> int:
    """Writes to each enabled webhook of the organization or project. Returns their number.

    Raises: ValueError if the payload has no `seq`.
    """
    text = document_text(event, payload)
    destinations = await outbox.lock_shared_webhooks(tx, org, project)
    if destinations:
        await outbox.insert_events(
            tx, org, project, Topic.INCIDENT, incident, incident, event, text, destinations
        )
    return len(destinations)


async def enqueue_status_page_events(
    tx: Tx, org: int, project: int, incident: UUID, seq: int, due_at: Instant
) -> None:
    """Writes to each status page with subscribers that can show the project, for `due_at`.

    The content is decided when the event is passed on, by the components that the page shows then.
    """
    destinations = await outbox.lock_shared_pages(tx, org, project)
    if destinations:
        text = document_text(NOTICE_EVENT, {"seq": seq})
        await outbox.insert_events(
            tx,
            org,
            project,
            Topic.INCIDENT,
            incident,
            incident,
            NOTICE_EVENT,
            text,
            destinations,
            due_at,
        )


async def enqueue_pages(
    tx: Tx,
    org: int,
    project: int,
    stream: UUID,
    thread: UUID,
    topic: Topic | str,
    channels: Collection[int],
    page: Notification,
) -> list[int]:
    """Writes to the enabled ones of the channels and records them as notified. Returns them."""
    if not channels:
        return []
    found = await outbox.lock_shared_channels(tx, org, project, sorted(set(channels)))
    await _write(tx, org, project, Topic(topic), stream, thread, page, found)
    await outbox.insert_notified(tx, org, thread, [destination for destination, _ in found])
    return [channel for _, channel in found]


async def enqueue_to_notified_channels(
    tx: Tx,
    org: int,
    project: int,
    stream: UUID,
    thread: UUID,
    topic: Topic | str,
    page: Notification,
) -> list[int]:
    """Writes to every enabled channel of the thread. Returns the channels."""
    found = await outbox.lock_shared_notified(tx, org, thread)
    await _write(tx, org, project, Topic(topic), stream, thread, page, found)
    return [channel for _, channel in found]


async def _write(
    tx: Tx,
    org: int,
    project: int,
    topic: Topic,
    stream: UUID,
    thread: UUID,
    page: Notification,
    found: list[tuple[int, int]],
) -> None:
    if found:
        destinations = [destination for destination, _ in found]
        await outbox.insert_events(
            tx,
            org,
            project,
            topic,
            stream,
            thread,
            page.event,
            page_text(page),
            destinations,
        )
