"""Lease and settlement of the events in the outbox.

Locks: a destination is locked while its events are leased, so that the leases of all processes
together stay within the limits. No transaction waits for such a lock. Each claim has its own lease
id, so that a settlement by an expired lease changes no rows. An event that a writer of its stream
has locked is skipped and settled later.
"""

from collections.abc import Collection, Sequence
from typing import Final
from uuid import UUID

import msgspec

from ...core.instant import Instant
from ...core.key import DestinationKey, EventKey, key_arrays
from ...engine.pools import LockRank, Tx
from ..rows import Backlog, Leased
from ..rules.delivery_retry import (
    DESTINATION_HELD_MOST,
    FAILING_HELD_MOST,
    LEASE_US,
    SHARED_MOST,
    SLOW_AFTER_US,
    CapacityLimits,
    DeliveryDecision,
    DestinationDemand,
    DestinationState,
)

# Jumps along the index from one destination to the next, independent of the number of events.
ACTIVE: Final = """
with recursive active as (
  (select o.org, o.destination, o.due_at from outbox o
   where o.status = 'pending' and o.ready
   order by o.org, o.destination, o.due_at limit 1)
  union all
  select n.org, n.destination, n.due_at from active a cross join lateral (
    select o.org, o.destination, o.due_at from outbox o
    where o.status = 'pending' and o.ready
      and (o.org, o.destination) > (a.org, a.destination)
    order by o.org, o.destination, o.due_at limit 1) n)
"""
_HELD: Final = """
(select count(*) from outbox o
 where o.org = d.org and o.destination = d.id and o.lease is not null and o.due_at > at(%(now)s))
"""
# Destinations with a due event and without a reason on our side to wait.
_FREE_TO_GO: Final = """
from active a
  join destinations d on d.org = a.org and d.id = a.destination
  left join notification_channels c on c.org = d.org and c.id = d.channel
  left join webhooks w on w.org = d.org and w.id = d.webhook
where a.due_at <= at(%(now)s) and (d.backoff_until is null or d.backoff_until <= at(%(now)s))
  and coalesce(c.enabled, w.enabled, true)
"""
_IS_DUE = f"{ACTIVE} select exists (select {_FREE_TO_GO})"
# Destinations at their limit, or with a send that is unanswered after SLOW_AFTER_US: no further
# event is sent until it is answered or fails. One subquery per destination, since a joint scan
# would read index entries of old leases.
_IS_FULL: Final = f"""
(select count(*) >=
     case when d.failures > 0 then {FAILING_HELD_MOST} else {DESTINATION_HELD_MOST} end
   or coalesce(min(o.due_at) <= at(%(now)s + {LEASE_US - SLOW_AFTER_US}), false)
 from outbox o
 where o.org = d.org and o.destination = d.id and o.lease is not null and o.due_at > at(%(now)s))
"""
_KINDS: Final = {
    "well_pages": (True, False),
    "failing_pages": (True, True),
    "well_webhooks": (False, False),
    "failing_webhooks": (False, True),
}
# A limit per kind, so that no kind hides another.
_OF_KIND: Final = """
{name} as (
  select d.org, d.id, w.is_page, w.due_at from wanting w join destinations d using (org, id)
  where w.is_page = {is_page} and w.is_failing = {is_failing}
  order by w.due_at limit %({name})s
  for no key update of d skip locked)
"""
_OF_KINDS: Final = ",".join(
    _OF_KIND.format(name=name, is_page=is_page, is_failing=is_failing)
    for name, (is_page, is_failing) in _KINDS.items()
)
_ALL_KINDS: Final = " union all ".join(f"select * from {name}" for name in _KINDS)
_LOCK_WANTING = f"""
{ACTIVE},
wanting as (
  select d.org, d.id, d.channel is not null as is_page, d.failures > 0 as is_failing, a.due_at
  {_FREE_TO_GO} and not {_IS_FULL}
),
{_OF_KINDS}
select org, id from ({_ALL_KINDS}) k
order by not is_page, due_at
"""
# A separate statement, so that it sees leases that were committed before the destination lock was
# released.
_DEMANDS = f"""
select d.org, d.id, d.channel is not null, d.failures, {_HELD},
  (select count(*) from (
     select from outbox o
     where o.org = d.org and o.destination = d.id and o.status = 'pending' and o.ready
       and o.due_at <= at(%(now)s) limit {DESTINATION_HELD_MOST}) as due)
from unnest(%(orgs)s::int[], %(ids)s::int[]) with ordinality as t(org, id, place)
  join destinations d on d.org = t.org and d.id = t.id
order by t.place
"""
_LOCK_DUE = """
select e.org, e.id, e.destination, e.stream, e.thread, e.attempts, e.lease is not null,
  e.topic = 'subscription', exists (
    select from destinations d join subscribers s on s.org = d.org and s.id = d.subscriber
    where d.org = e.org and d.id = e.destination and s.kind = 'webhook')
from unnest(%(orgs)s::int[], %(destinations)s::int[], %(counts)s::int[]) as t(org, destination, n)
cross join lateral (
  select o.org, o.id, o.destination, o.stream, o.thread, o.attempts, o.lease, o.topic from outbox o
  where o.org = t.org and o.destination = t.destination and o.status = 'pending' and o.ready
    and o.due_at <= at(%(now)s)
  order by o.due_at, o.id limit t.n
  for no key update skip locked) e
"""
_LEASE = f"""
update outbox o set lease = %(lease)s, attempts = o.attempts + 1,
  due_at = at(%(now)s + {LEASE_US}), updated_at = at(%(now)s)
from unnest(%(orgs)s::int[], %(ids)s::bigint[]) as t(org, id), destinations d
where o.org = t.org and o.id = t.id and d.org = o.org and d.id = o.destination
returning o.org, o.id, o.uid, o.destination, d.channel, d.webhook, d.page, d.subscriber, o.project,
  o.topic, o.thread, o.event, o.payload::text, o.attempts, o.enqueued_through, coalesce(
    (select c.external_id from notification_threads c
     where c.org = o.org and c.thread = o.thread and c.destination = o.destination), '')
"""
_NOTE_TOLD = """
update outbox set enqueued_through = %(through)s
where org = %(org)s and id = %(id)s and lease = %(lease)s
"""
# A deletion waits until the events are settled, so that they do not disappear midway.
_HOLD_DESTINATIONS = """
select d.org, d.id, d.failures, d.backoff_until
from unnest(%(orgs)s::int[], %(ids)s::int[]) as t(org, id)
  join destinations d on d.org = t.org and d.id = t.id
order by d.org, d.id for key share of d
"""
_LOCK_HELD = """
select o.org, o.id, o.destination, o.stream, o.thread, o.attempts
from unnest(%(orgs)s::int[], %(ids)s::bigint[], %(leases)s::uuid[]) as t(org, id, lease)
  join outbox o on o.org = t.org and o.id = t.id and o.lease = t.lease
for no key update of o skip locked
"""
_STILL_HELD = """
select o.org, o.id
from unnest(%(orgs)s::int[], %(ids)s::bigint[], %(leases)s::uuid[]) as t(org, id, lease)
  join outbox o on o.org = t.org and o.id = t.id and o.lease = t.lease
"""
# All rows are locked. A writer of a later event has committed and is visible, or waits for this
# transaction. The next row is found by the rows delivered here, which the same statement does not
# see as delivered.
_SETTLE = """
with settled as (
  update outbox o set status = t.status, attempts = t.attempts, lease = null, due_at = at(t.due),
    last_error = t.error, updated_at = at(%(now)s)
  from unnest(%(orgs)s::int[], %(ids)s::bigint[], %(statuses)s::text[], %(attempts)s::int[],
    %(dues)s::bigint[], %(errors)s::text[]) as t(org, id, status, attempts, due, error)
  where o.org = t.org and o.id = t.id
  returning o.org, o.id, o.destination, o.stream, o.status
), readied as (
  update outbox o set ready = true
  from settled t cross join lateral (
      select n.org, n.id from outbox n
      where n.org = t.org and n.destination = t.destination and n.stream = t.stream
        and n.status <> 'delivered' and n.id > t.id
      order by n.id limit 1) n
  where t.status = 'delivered' and o.org = n.org and o.id = n.id and not o.ready
  returning o.id
)
select (select count(*) from settled), (select count(*) from readied)
"""
# A locked row is being leased, or its stream is being written; it is counted the next time.
_LOCK_WAITING = f"""
select e.org, e.id, e.destination, e.stream, e.thread, e.attempts, e.topic = 'subscription'
from unnest(%(orgs)s::int[], %(ids)s::int[]) as t(org, destination)
cross join lateral (
  select o.org, o.id, o.destination, o.stream, o.thread, o.attempts, o.topic from outbox o
  where o.org = t.org and o.destination = t.destination and o.status = 'pending' and o.ready
    and o.lease is null and o.due_at <= at(%(now)s)
  order by o.due_at, o.id limit {SHARED_MOST}
  for no key update skip locked) e
"""
_MAKE_DUE = f"""
with waiting as (
  select e.org, e.id from unnest(%(orgs)s::int[], %(ids)s::int[]) as t(org, destination)
  cross join lateral (
    select o.org, o.id from outbox o
    where o.org = t.org and o.destination = t.destination and o.status = 'pending' and o.ready
      and o.lease is null and o.attempts > 0 and o.due_at > at(%(now)s)
    order by o.due_at, o.id limit {SHARED_MOST}
    for no key update skip locked) e
)
update outbox o set due_at = at(%(now)s) from waiting w where o.org = w.org and o.id = w.id
"""
# The outages of a monitor share a stream, but a dead event must not block the next outage. With the
# later events of its own outage it moves to a separate stream.
_SET_ASIDE = """
update outbox o set stream = o.thread
from unnest(%(orgs)s::int[], %(destinations)s::int[], %(streams)s::uuid[],
  %(threads)s::uuid[]) as t(org, destination, stream, thread)
where o.org = t.org and o.destination = t.destination and o.stream = t.stream
  and o.thread = t.thread and o.status <> 'delivered'
"""
_READY_FIRST = """
update outbox o set ready = true
from unnest(%(orgs)s::int[], %(destinations)s::int[], %(streams)s::uuid[])
    as t(org, destination, stream)
  cross join lateral (
    select n.org, n.id from outbox n
    where n.org = t.org and n.destination = t.destination and n.stream = t.stream
      and n.status <> 'delivered'
    order by n.id limit 1) n
where o.org = n.org and o.id = n.id and not o.ready
"""
_NAME_THREADS = """
update notification_threads c set external_id = t.external_id
from unnest(%(orgs)s::int[], %(threads)s::uuid[], %(destinations)s::int[],
  %(external_ids)s::text[]) as t(org, thread, destination, external_id)
where c.org = t.org and c.thread = t.thread and c.destination = t.destination
  and c.external_id = ''
"""
_LOCK_STANDINGS = """
select d.org, d.id, d.failures, d.backoff_until
from unnest(%(orgs)s::int[], %(ids)s::int[]) as t(org, id)
  join destinations d on d.org = t.org and d.id = t.id
order by d.org, d.id for no key update of d
"""
_SET_STANDINGS = """
update destinations d set failures = t.failures, backoff_until = at(t.until)
from unnest(%(orgs)s::int[], %(ids)s::int[], %(failures)s::int[], %(untils)s::bigint[])
  as t(org, id, failures, until)
where d.org = t.org and d.id = t.id
"""


class _Event(msgspec.Struct, frozen=True):
    org: int
    id: int
    destination: int
    stream: UUID
    thread: UUID
    attempts: int

    @property
    def key(self) -> EventKey:
        return EventKey((self.org, self.id))

    @property
    def destination_key(self) -> DestinationKey:
        return DestinationKey((self.org, self.destination))


class Held(_Event, frozen=True):
    """An event whose lease is valid and whose row is locked."""


class Due(Held, frozen=True):
    was_leased: bool
    is_question: bool
    is_visitors_webhook: bool


class WaitingEvent(Held, frozen=True):
    """An event that is due and is not leased."""

    is_question: bool


async def is_delivery_due(tx: Tx) -> bool:
    """Returns whether an event may be due. If not, it costs one index lookup."""
    found: bool = await tx.value(_IS_DUE, now=tx.now)
    return found


async def lock_wanting(tx: Tx, rooms: CapacityLimits) -> list[DestinationDemand]:
    """Locks destinations with due events that can be leased.

    Pages come first, then the destinations with the oldest due events. `rooms` limits each kind.
    """
    tx.lock_rank(LockRank.OUTBOX, "destinations that are delivered to")
    most = {
        name: rooms.of(is_page=is_page, is_failing=is_failing)
        for name, (is_page, is_failing) in _KINDS.items()
    }
    found = await tx.rows(_LOCK_WANTING, **most, now=tx.now)
    if not found:
        return []
    orgs, ids = [row[0] for row in found], [row[1] for row in found]
    return await tx.structs(_demand, _DEMANDS, orgs=orgs, ids=ids, now=tx.now)


async def lock_due(tx: Tx, wanted: Sequence[tuple[DestinationDemand, int]]) -> list[Due]:
    """Locks due events of each destination, up to its count, longest due first."""
    tx.lock_rank(LockRank.OUTBOX, "events that are due")
    return await tx.structs(
        Due,
        _LOCK_DUE,
        orgs=[demand.org for demand, _ in wanted],
        destinations=[demand.destination for demand, _ in wanted],
        counts=[count for _, count in wanted],
        now=tx.now,
    )


async def lease(tx: Tx, due: Sequence[Due], name: UUID) -> list[Leased]:
    """Leases the locked events and counts an attempt of each."""
    keys = key_arrays([(item.org, item.id) for item in due], "ids")
    return await tx.structs(Leased, _LEASE, **keys, lease=name, now=tx.now)


async def record_notified(tx: Tx, leased: Leased, lease: UUID, through: int) -> bool:
    """Records that a row exists for each subscriber up to `through`.

    Returns False without a lease.
    """
    tx.lock_rank(LockRank.OUTBOX, "an event of a page that is passed on")
    given = {"org": leased.org, "id": leased.id, "lease": lease, "through": through}
    return await tx.execute(_NOTE_TOLD, **given) == 1


async def lock_shared_destinations(
    tx: Tx, destinations: Collection[DestinationKey]
) -> dict[DestinationKey, DestinationState]:
    """Share-locks destinations against deletion, not against updates. Returns their states."""
    tx.lock_rank(LockRank.OUTBOX, "destinations whose events are settled")
    rows = await tx.rows(_HOLD_DESTINATIONS, **key_arrays(sorted(destinations), "ids"))
    return {DestinationKey((row[0], row[1])): DestinationState(row[2], row[3]) for row in rows}


async def lock_held(
    tx: Tx, items: Sequence[tuple[Leased, UUID]]
) -> tuple[list[Held], set[EventKey]]:
    """Locks the events whose lease is valid.

    Returns them, and the keys of valid leases whose rows another transaction has locked.
    """
    tx.lock_rank(LockRank.OUTBOX, "events that are settled")
    given = key_arrays([(item.org, item.id) for item, _ in items], "ids")
    leases = [name for _, name in items]
    found = await tx.structs(Held, _LOCK_HELD, **given, leases=leases)
    if len(found) == len(items):
        return found, set()
    still = {
        EventKey((row[0], row[1])) for row in await tx.rows(_STILL_HELD, **given, leases=leases)
    }
    return found, still - {held.key for held in found}


async def lock_waiting(tx: Tx, destinations: Collection[DestinationKey]) -> list[WaitingEvent]:
    """Locks up to SHARED_MOST events of each destination, longest due first.

    Skips locked events.
    """
    tx.lock_rank(LockRank.OUTBOX, "events that wait for a failing destination")
    keys = key_arrays(sorted(destinations), "ids")
    return await tx.structs(WaitingEvent, _LOCK_WAITING, **keys, now=tx.now)


async def make_due(tx: Tx, destinations: Collection[DestinationKey]) -> int:
    """Makes events due that wait for their next attempt at a destination; returns how many."""
    keys = key_arrays(sorted(destinations), "ids")
    return await tx.execute(_MAKE_DUE, **keys, now=tx.now)


async def settle(tx: Tx, settled: Sequence[tuple[Held, DeliveryDecision, str]]) -> int:
    """Stores the outcome and last error of each event.

    Returns how many later events become ready.
    """
    found = await tx.row(
        _SETTLE,
        **key_arrays([(held.org, held.id) for held, _, _ in settled], "ids"),
        statuses=[verdict.status.value for _, verdict, _ in settled],
        attempts=[held.attempts for held, _, _ in settled],
        dues=[verdict.due for _, verdict, _ in settled],
        errors=[error for _, _, error in settled],
        now=tx.now,
    )
    assert found is not None, "counts are always there"
    count, readied = found
    assert count == len(settled), "all of them are locked"
    ready: int = readied
    return ready


async def set_aside(tx: Tx, dead: Sequence[Held]) -> int:
    """Moves locked dead events to separate streams; returns how many events become ready.

    Events of incidents stay in place.
    """
    aside = [item for item in dead if item.stream != item.thread]
    if not aside:
        return 0
    given = {
        "orgs": [item.org for item in aside],
        "destinations": [item.destination for item in aside],
        "streams": [item.stream for item in aside],
    }
    await tx.execute(_SET_ASIDE, **given, threads=[item.thread for item in aside])
    return await tx.execute(_READY_FIRST, **given)


async def name_threads(tx: Tx, named: Sequence[tuple[Held, str]]) -> None:
    """Stores the ids that services gave to the first message of a thread. Keeps an older id."""
    await tx.execute(
        _NAME_THREADS,
        orgs=[held.org for held, _ in named],
        threads=[held.thread for held, _ in named],
        destinations=[held.destination for held, _ in named],
        external_ids=[external_id for _, external_id in named],
    )


async def lock_standings(
    tx: Tx, destinations: Collection[DestinationKey]
) -> dict[DestinationKey, DestinationState]:
    tx.lock_rank(LockRank.OUTBOX, "destinations that failed or were reached")
    rows = await tx.rows(_LOCK_STANDINGS, **key_arrays(sorted(destinations), "ids"))
    return {DestinationKey((row[0], row[1])): DestinationState(row[2], row[3]) for row in rows}


async def set_standings(tx: Tx, standings: dict[DestinationKey, DestinationState]) -> None:
    await tx.execute(
        _SET_STANDINGS,
        **key_arrays(list(standings), "ids"),
        failures=[standing.failures for standing in standings.values()],
        untils=[standing.backoff_until for standing in standings.values()],
    )


def _demand(
    org: int, destination: int, is_page: bool, failures: int, held: int, due: int
) -> DestinationDemand:
    return DestinationDemand(org, destination, is_page, failures, held, due)


# A thread is deleted after its events: the last event still needs the thread's destinations and the
# id of its first message. A dead or pending event keeps its thread.
_DROP_DELIVERED = """
delete from outbox where (org, id) in (
  select o.org, o.id from outbox o
  where o.status = 'delivered' and o.updated_at < at(%(before)s)
  order by o.updated_at limit %(most)s)
"""
_DROP_THREADS = """
delete from notification_threads c
where c.created_at < at(%(before)s)
  and not exists (select from outbox o
    where o.org = c.org and o.thread = c.thread)
  and not exists (select from incidents i
    where i.org = c.org and i.uid = c.thread and i.status <> 'resolved')
  and not exists (select from outages u
    where u.org = c.org and u.uid = c.thread and u.ended_at is null)
  -- A channel that was notified of a burn rule also gets its end.
  and not exists (select from burn_rules b
    where b.org = c.org and b.notified_at is not null and b.firing_since <= c.created_at)
"""


async def purge_delivered(tx: Tx, before: Instant, most: int) -> int:
    """Deletes up to `most` events delivered before the instant. Returns their number."""
    return await tx.execute(_DROP_DELIVERED, before=before, most=most)


async def purge_threads(tx: Tx, before: Instant) -> int:
    """Deletes old threads that have no events and expect no further ones."""
    return await tx.execute(_DROP_THREADS, before=before)


_BACKLOG = f"""
{ACTIVE}
select u.pending, u.dead,
  (select count(*) from destinations d where d.failures > 0
     and not exists (select from subscribers s where s.org = d.org and s.id = d.subscriber
       and (s.kind = 'webhook' or s.confirmed_at is null))),
  (select min(a.due_at) {_FREE_TO_GO})
from (
  select count(*) filter (where status = 'pending') as pending,
    count(*) filter (where status = 'dead' and topic <> 'subscription') as dead
  from outbox where status <> 'delivered') u
"""


async def select_backlog(tx: Tx) -> Backlog:
    found = await tx.row(_BACKLOG, now=tx.now)
    assert found is not None, "counts are always there"
    pending, dead, failing, oldest_due_at = found
    return Backlog(tx.now, pending, dead, failing, oldest_due_at)
