"""Outbox: events for destinations, written in the transaction of their cause.

A row is one event for one destination. Within a stream, a destination gets the events in order: a
row is `ready` if no earlier event of its stream is undelivered. The settlement of the earlier row
makes the next one ready.

Locks: a writer locks the first undelivered row of the stream FOR SHARE. The row cannot be settled
before the commit, so its settlement sees the new row. If the row is being settled, the writer waits
and finds it delivered.

A dead page and the other pages of its outage form a separate stream, named as their thread.
"""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from uuid_utils.compat import uuid7

from ...core.instant import Instant
from ...engine.pools import LockRank, Tx
from ..rules.notification import NOTICE_EVENT, Topic

# A webhook or channel that is being deleted is waited for and left out. Only its first event needs
# this statement.
_MAKE_FOR_WEBHOOKS = """
insert into destinations (org, webhook)
select w.org, w.id from webhooks w
where w.org = %(org)s and w.enabled and (w.project is null or w.project = %(project)s)
  and not exists (select from destinations d where d.org = w.org and d.webhook = w.id)
order by w.id for key share of w
on conflict do nothing
"""
_MAKE_FOR_CHANNELS = """
insert into destinations (org, channel)
select c.org, c.id from notification_channels c
where c.org = %(org)s and c.project = %(project)s and c.id = any(%(channels)s::int[]) and c.enabled
  and not exists (select from destinations d where d.org = c.org and d.channel = c.id)
order by c.id for key share of c
on conflict do nothing
"""
# The lock prevents a deletion between the selection and the insert.
_OF_WEBHOOKS = """
select d.id from destinations d join webhooks w on w.org = d.org and w.id = d.webhook
where w.org = %(org)s and w.enabled and (w.project is null or w.project = %(project)s)
order by d.id for key share of d
"""
_NEW_WEBHOOKS = """
exists (select from webhooks w
  where w.org = %(org)s and w.enabled and (w.project is null or w.project = %(project)s)
    and not exists (select from destinations d where d.org = w.org and d.webhook = w.id))
"""
# A row without an id: a webhook has no destination yet. Then no destination is locked, because a
# deletion of several webhooks locks them before their destinations.
_HELD_WEBHOOKS = f"""
with held as ({_OF_WEBHOOKS.replace("order", f"and not (select {_NEW_WEBHOOKS}) order")})
select id from held union all select null where {_NEW_WEBHOOKS}
"""
_OF_CHANNELS = """
select d.id, d.channel from destinations d
  join notification_channels c on c.org = d.org and c.id = d.channel
where c.org = %(org)s and c.project = %(project)s and c.id = any(%(channels)s::int[]) and c.enabled
order by d.id for key share of d
"""
# A person who left the project gets no later event.
_OF_THREAD = """
select d.id, d.channel from notification_threads t
  join destinations d on d.org = t.org and d.id = t.destination
  join notification_channels c on c.org = d.org and c.id = d.channel
where t.org = %(org)s and t.thread = %(thread)s and c.enabled
  and (c.person is null or exists (select from memberships m
    where m.user_id = c.person and m.org = c.org
      and (m.project is null or m.project = c.project)))
order by d.id for key share of d
"""
# Status pages that can notify subscribers of the project. The page decides later
# whether it shows the incident.
_TELLS: Final = """
g.org = %(org)s and (g.project is null or g.project = %(project)s) and g.visibility <> 'internal'
and exists (select from subscribers s where s.org = g.org and s.page = g.id
  and s.confirmed_at is not null and s.suspended_at is null)
"""
_MAKE_FOR_PAGES: Final = f"""
insert into destinations (org, page)
select g.org, g.id from status_pages g
where {_TELLS} and not exists (select from destinations d where d.org = g.org and d.page = g.id)
order by g.id for key share of g
on conflict do nothing
"""
_OF_PAGES: Final = f"""
select d.id from destinations d join status_pages g on g.org = d.org and g.id = d.page
where {_TELLS} order by d.id for key share of d
"""
_HELD_PAGES: Final = f"""
with held as ({_OF_PAGES})
select id from held union all
select null where exists (select from status_pages g where {_TELLS}
  and not exists (select from destinations d where d.org = g.org and d.page = g.id))
"""
_OF_SUBSCRIBERS = """
select d.id, s.id, s.components from subscribers s
  join destinations d on d.org = s.org and d.subscriber = s.id
where s.org = %(org)s and s.page = %(page)s and s.id > %(after)s
  and s.confirmed_at is not null and s.suspended_at is null
order by s.id limit %(most)s for key share of d
"""
_HOLD = """
select id from destinations where org = %(org)s and id = any(%(destinations)s::int[])
order by id for key share
"""
# Only the first row can be settled. If it was settled during the wait, it no longer qualifies and
# the next row is found.
_LOCK_HEADS = """
select h.destination
from unnest(%(destinations)s::int[]) as t(destination) cross join lateral (
  select o.destination from outbox o
  where o.org = %(org)s and o.destination = t.destination and o.stream = %(stream)s
    and o.status <> 'delivered'
  order by o.id limit 1 for share) h
"""
_INSERT = """
insert into outbox (org, uid, project, topic, destination, stream, thread, event, payload,
  ready, due_at, created_at, updated_at)
select %(org)s, t.uid, %(project)s, %(topic)s, t.destination, t.stream, %(thread)s,
  %(event)s, %(payload)s::jsonb, t.ready, at(%(due_at)s), at(%(now)s), at(%(now)s)
from unnest(%(destinations)s::int[], %(uids)s::uuid[], %(streams)s::uuid[],
  %(readies)s::boolean[]) as t(destination, uid, stream, ready)
"""
_LOCK_OF_UPDATE = """
select o.status <> 'pending' or o.lease is not null or o.enqueued_through > 0
from outbox o join destinations d on d.org = o.org and d.id = o.destination
where o.org = %(org)s and o.thread = %(incident)s and o.event = %(event)s
  and d.page is not null and (o.payload->>'seq')::int = %(seq)s
order by o.id for no key update of o
"""
_REMEMBER = """
insert into notification_threads (org, thread, destination, created_at)
select %(org)s, %(thread)s, t.destination, at(%(now)s)
from unnest(%(destinations)s::int[]) as t(destination)
on conflict do nothing
"""

# A row with a lease or an attempt is being sent.
_DELETE_LATER = """
delete from outbox o using destinations d, notification_channels c
where o.org = %(org)s and o.thread = %(thread)s and o.status = 'pending' and o.lease is null
  and o.attempts = 0 and o.due_at > at(%(now)s) and o.payload->>'status' = 'down'
  and d.org = o.org and d.id = o.destination and c.org = d.org and c.id = d.channel
  and c.contact_method is not null
returning o.destination, o.stream
"""
# A destination that got no event of the thread gets no later one.
_FORGET_UNNOTIFIED = """
delete from notification_threads t
where t.org = %(org)s and t.thread = %(thread)s and t.destination = any(%(destinations)s::int[])
  and not exists (select from outbox o
    where o.org = t.org and o.thread = t.thread and o.destination = t.destination)
"""
_READY_HEADS = """
update outbox o set ready = true
from unnest(%(destinations)s::int[], %(streams)s::uuid[]) as t(destination, stream)
  cross join lateral (
    select n.org, n.id from outbox n
    where n.org = %(org)s and n.destination = t.destination and n.stream = t.stream
      and n.status <> 'delivered'
    order by n.id limit 1) n
where o.org = n.org and o.id = n.id and not o.ready
"""


async def delete_later(tx: Tx, org: int, thread: UUID) -> int:
    """Deletes messages to contact methods about an outage that are not due yet."""
    tx.lock_rank(LockRank.OUTBOX, "messages to people that are not due yet")
    rows = await tx.rows(_DELETE_LATER, org=org, thread=thread, now=tx.now)
    if rows:
        gone = sorted(set(rows))
        destinations = [destination for destination, _ in gone]
        await tx.execute(_FORGET_UNNOTIFIED, org=org, thread=thread, destinations=destinations)
        streams = [stream for _, stream in gone]
        await tx.execute(_READY_HEADS, org=org, destinations=destinations, streams=streams)
    return len(rows)


async def lock_shared_webhooks(tx: Tx, org: int, project: int) -> list[int]:
    """Share-locks the destinations of the enabled webhooks that receive events of the project."""
    tx.lock_rank(LockRank.OUTBOX, "destinations that are written for")
    return await _hold(tx, _HELD_WEBHOOKS, _MAKE_FOR_WEBHOOKS, _OF_WEBHOOKS, org, project)


async def lock_shared_channels(
    tx: Tx, org: int, project: int, channels: Sequence[int]
) -> list[tuple[int, int]]:
    """Share-locks the enabled ones of the project's channels. Returns (destination, channel)."""
    tx.lock_rank(LockRank.OUTBOX, "destinations that are written for")
    given = {"org": org, "project": project, "channels": list(channels)}
    await tx.execute(_MAKE_FOR_CHANNELS, **given)
    return [(row[0], row[1]) for row in await tx.rows(_OF_CHANNELS, **given)]


async def lock_shared_notified(tx: Tx, org: int, thread: UUID) -> list[tuple[int, int]]:
    """Share-locks the enabled channels of the thread. Returns (destination, channel)."""
    tx.lock_rank(LockRank.OUTBOX, "destinations that are written for")
    rows = await tx.rows(_OF_THREAD, org=org, thread=thread)
    return [(row[0], row[1]) for row in rows]


async def lock_shared_pages(tx: Tx, org: int, project: int) -> list[int]:
    """Share-locks the destinations of the status pages that can notify of the project."""
    tx.lock_rank(LockRank.OUTBOX, "destinations that are written for")
    return await _hold(tx, _HELD_PAGES, _MAKE_FOR_PAGES, _OF_PAGES, org, project)


async def _hold(tx: Tx, held: str, make: str, of: str, org: int, project: int) -> list[int]:
    """Returns destinations under their locks. Only the first event of one needs `make`."""
    found = [row[0] for row in await tx.rows(held, org=org, project=project)]
    if None not in found:
        return found
    await tx.execute(make, org=org, project=project)
    return [row[0] for row in await tx.rows(of, org=org, project=project)]


async def lock_shared_subscribers(
    tx: Tx, org: int, page: int, after: int, most: int
) -> list[tuple[int, int, list[UUID] | None]]:
    """Share-locks the page's next active subscribers, by id.

    Returns (destination, subscriber, selected components).
    """
    tx.lock_rank(LockRank.OUTBOX, "destinations that are written for")
    rows = await tx.rows(_OF_SUBSCRIBERS, org=org, page=page, after=after, most=most)
    return [(row[0], row[1], row[2]) for row in rows]


async def lock_shared_destinations(tx: Tx, org: int, destinations: Sequence[int]) -> None:
    tx.lock_rank(LockRank.OUTBOX, "destinations that are written for")
    await tx.rows(_HOLD, org=org, destinations=list(destinations))


async def insert_events(
    tx: Tx,
    org: int,
    project: int | None,
    topic: Topic,
    stream: UUID,
    thread: UUID,
    event: str,
    payload: str,
    destinations: Sequence[int],
    due_at: Instant | None = None,
    *,
    is_first: bool = False,
) -> None:
    """Inserts one row per destination, due at `due_at`, without it now.

    `is_first` states that the transaction began the stream, so that no row of it is waiting.

    Locks: the caller has locked all destinations and the subject of the stream, so that ids rise in
    commit order.
    """
    tx.lock_rank(LockRank.OUTBOX, "undelivered events of a stream")
    held = list(destinations)
    waiting = set[int]() if is_first else await _lock_heads(tx, org, stream, held)
    aside: set[int] = set()
    if thread != stream:
        # An outage with a dead page has a separate stream. Check it after the lock above: rows that
        # are not set aside by now are locked by this transaction and stay in place.
        aside = await _lock_heads(tx, org, thread, held)
    await tx.execute(
        _INSERT,
        org=org,
        project=project,
        topic=topic.value,
        thread=thread,
        event=event,
        payload=payload,
        destinations=held,
        uids=[uuid7() for _ in held],
        streams=[thread if destination in aside else stream for destination in held],
        readies=[destination not in waiting | aside for destination in held],
        due_at=tx.now if due_at is None else due_at,
        now=tx.now,
    )


async def lock_begun_pages(tx: Tx, org: int, incident: UUID, seq: int) -> bool:
    """Locks the status pages' events of an update, against a lease.

    Returns whether the delivery of one has begun, even if it is not finished.
    """
    tx.lock_rank(LockRank.OUTBOX, "events of an update that is withdrawn")
    rows = await tx.rows(_LOCK_OF_UPDATE, org=org, incident=incident, event=NOTICE_EVENT, seq=seq)
    return any(begun for (begun,) in rows)


async def _lock_heads(tx: Tx, org: int, stream: UUID, destinations: list[int]) -> set[int]:
    """Locks the heads. Returns the destinations with undelivered events of the stream."""
    rows = await tx.rows(_LOCK_HEADS, org=org, stream=stream, destinations=destinations)
    return {row[0] for row in rows}


async def insert_notified(tx: Tx, org: int, thread: UUID, destinations: Sequence[int]) -> None:
    await tx.execute(_REMEMBER, org=org, thread=thread, destinations=list(destinations), now=tx.now)
