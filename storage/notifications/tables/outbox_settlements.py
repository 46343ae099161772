"""Stores the outcome of sent events, and deletes the events that nothing needs.

Locks: an event is locked by its lease, and skipped if a writer of its stream has locked it; it is
settled later. A destination is share-locked before its events, so that no deletion removes them.
"""

from collections.abc import Collection, Sequence
from uuid import UUID

from ...core.instant import Instant
from ...core.key import DestinationKey, EventKey, key_arrays
from ...engine.pools import LockRank, Tx
from ..rows import HeldEvent, Leased, WaitingEvent
from ..rules.delivery_retry import SHARED_MOST, DeliveryDecision, DestinationState

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


async def lock_shared_destinations(
    tx: Tx, destinations: Collection[DestinationKey]
) -> dict[DestinationKey, DestinationState]:
    """Share-locks destinations against deletion, not against updates. Returns their states."""
    tx.lock_rank(LockRank.OUTBOX, "destinations whose events are settled")
    rows = await tx.rows(_HOLD_DESTINATIONS, **key_arrays(sorted(destinations), "ids"))
    return {DestinationKey((row[0], row[1])): DestinationState(row[2], row[3]) for row in rows}


async def lock_held(
    tx: Tx, items: Sequence[tuple[Leased, UUID]]
) -> tuple[list[HeldEvent], set[EventKey]]:
    """Locks the events whose lease is valid.

    Returns them, and the keys of valid leases whose rows another transaction has locked.
    """
    tx.lock_rank(LockRank.OUTBOX, "events that are settled")
    given = key_arrays([(item.org, item.id) for item, _ in items], "ids")
    leases = [name for _, name in items]
    found = await tx.structs(HeldEvent, _LOCK_HELD, **given, leases=leases)
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


async def settle(tx: Tx, settled: Sequence[tuple[HeldEvent, DeliveryDecision, str]]) -> int:
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


async def set_aside(tx: Tx, dead: Sequence[HeldEvent]) -> int:
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


async def name_threads(tx: Tx, named: Sequence[tuple[HeldEvent, str]]) -> None:
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
