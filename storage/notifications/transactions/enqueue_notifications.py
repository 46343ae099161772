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
from ..tables.person_channels import select_people
from .page_people import after_quiet_hours, planned_methods

__all__ = [
    "Notification",
    "Topic",
    "cancel_later_messages",
    "enqueue_pages",
    "enqueue_status_page_events",
    "enqueue_to_notified_channels",
    "enqueue_webhooks",
]


async def enqueue_webhooks(
    tx: Tx,
    org: int,
    project: int,
    incident: UUID,
    event: str,
    payload: Mapping[str, Any],
    *,
    is_first: bool = False,
) -> int:
    """Writes to each enabled webhook of the organization or project. Returns their number.

    `is_first`: the transaction has created the incident.

    Raises: ValueError if the payload has no `seq`.
    """
    text = document_text(event, payload)
    destinations = await outbox.lock_shared_webhooks(tx, org, project)
    if destinations:
        await outbox.insert_events(
            tx,
            org,
            project,
            Topic.INCIDENT,
            incident,
            incident,
            event,
            text,
            destinations,
            is_first=is_first,
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
    """Writes to the enabled ones of the channels and records them as notified. Returns them.

    A channel of a person stands for the person's contact methods. It counts as paged if a row was
    written for at least one of them.
    """
    if not channels:
        return []
    every, people = await select_people(tx, org, project, sorted(set(channels)))
    later: dict[int, Instant] = {}
    mine: dict[int, list[int]] = {}
    if people:
        later, mine = await planned_methods(tx, org, project, people, page.severity)
    wanted = sorted({*later, *channels} - every)
    found = await outbox.lock_shared_channels(tx, org, project, wanted)
    await _write(tx, org, project, Topic(topic), stream, thread, page, found, later)
    await outbox.insert_notified(tx, org, thread, [destination for destination, _ in found])
    paged = {channel for _, channel in found}
    reached = [person for person, methods in mine.items() if paged & set(methods)]
    return [channel for _, channel in found if channel not in later] + reached


async def enqueue_to_notified_channels(
    tx: Tx,
    org: int,
    project: int,
    stream: UUID,
    thread: UUID,
    topic: Topic | str,
    page: Notification,
) -> list[int]:
    """Writes to every enabled channel of the thread. Returns the channels.

    A recovery cancels the messages to people that are not due yet.
    """
    if page.status == "recovered":
        await cancel_later_messages(tx, org, thread)
    found = await outbox.lock_shared_notified(tx, org, thread)
    channels = [channel for _, channel in found]
    later = await after_quiet_hours(tx, org, channels, page.severity)
    await _write(tx, org, project, Topic(topic), stream, thread, page, found, later)
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
    later: Mapping[int, Instant],
) -> None:
    """Writes the page to each (destination, channel), `later` at the instant of its channel."""
    by_instant: dict[Instant, list[int]] = {}
    for destination, channel in found:
        by_instant.setdefault(later.get(channel, tx.now), []).append(destination)
    for due_at, destinations in sorted(by_instant.items()):
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
            due_at,
        )


async def cancel_later_messages(tx: Tx, org: int, thread: UUID) -> int:
    """Deletes messages to people about an outage that are not due yet. Returns their number.

    An acknowledgement and a recovery call it. Locks: the caller has locked the subject.
    """
    return await outbox.delete_later(tx, org, thread)
