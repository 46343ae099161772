"""Dead letters, the latest first: as stored, or with their destination for display.

Questions whether an address subscribes are not dead letters. A process of an earlier version can
still have left one.
"""

from typing import Final
from uuid import UUID

import msgspec

from ...core.instant import Instant
from ...engine.pools import Tx

MOST: Final = 500

_EVENTS = """
select o.uid, o.topic, o.status, o.attempts, o.last_error, o.payload::text, o.created_at,
  o.updated_at
from outbox o where o.status = 'dead' and o.topic <> 'subscription'
order by o.updated_at desc, o.id limit %(most)s
"""
# Only the host of a webhook's URL is shown: the rest can be a secret. A webhook of an organization
# outlives the projects of its events.
_LETTERS = """
select o.uid, o.topic, o.stream, o.event, o.payload ->> 'title', o.attempts, o.last_error,
  o.created_at, o.updated_at, p.uid, p.name, g.name, c.name, c.type,
  substring(w.url from '^[a-z]+://(?:[^/@]*@)?([^/?#]*)'), o.project is null,
  (select y.title from status_pages y where y.org = d.org
   and y.id = coalesce(d.page, (select s.page from subscribers s
     where s.org = d.org and s.id = d.subscriber))),
  (select count(*) from outbox n
   where n.org = o.org and n.destination = o.destination and n.stream = o.stream
     and n.status <> 'delivered' and n.id > o.id)
from outbox o
  left join projects p on p.org = o.org and p.id = o.project
  join organizations g on g.id = o.org
  join destinations d on d.org = o.org and d.id = o.destination
  left join notification_channels c on c.org = d.org and c.id = d.channel
  left join webhooks w on w.org = d.org and w.id = d.webhook
where o.status = 'dead' and o.topic <> 'subscription'
order by o.updated_at desc, o.id limit %(most)s
"""
_COUNT = "select count(*) from outbox where status = 'dead' and topic <> 'subscription'"


class DeadEvent(msgspec.Struct, frozen=True):
    """A dead event as stored. `payload` is JSON text."""

    uid: UUID
    topic: str
    status: str
    attempts: int
    last_error: str
    payload: str
    created_at: Instant
    updated_at: Instant


class DeadLetter(msgspec.Struct, frozen=True):
    """A dead letter for display.

    Its destination is `channel` with its type, the `host` of a webhook, or the status page of a
    subscriber. `behind` counts the events that wait for it. `of_no_project` is true for an event of
    the organization itself.
    """

    uid: UUID
    topic: str
    stream: UUID
    event: str
    title: str | None
    attempts: int
    last_error: str
    created_at: Instant
    died_at: Instant
    # None if the project was deleted.
    project_uid: UUID | None
    project: str | None
    organization: str
    channel: str | None
    channel_type: str | None
    host: str | None
    of_no_project: bool
    status_page: str | None
    behind: int


async def select_dead_events(tx: Tx, most: int) -> list[DeadEvent]:
    """Returns at most MOST dead events."""
    return await tx.structs(DeadEvent, _EVENTS, most=min(most, MOST))


async def select_dead_letters(tx: Tx, most: int) -> list[DeadLetter]:
    return await tx.structs(DeadLetter, _LETTERS, most=min(most, MOST))


async def count_dead(tx: Tx) -> int:
    count: int = await tx.value(_COUNT)
    return count
