"""Leases due events of the outbox to a sender, and counts what waits.

Locks: a destination is locked while its events are leased, so that the leases of all processes
together stay within the limits. No transaction waits for such a lock. Each claim has its own lease
id, so that a settlement by an expired lease changes no rows.
"""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from ...core.key import key_arrays
from ...engine.pools import LockRank, Tx
from ..rows import Backlog, DueEvent, Leased
from ..rules.delivery_retry import (
    DESTINATION_HELD_MOST,
    FAILING_HELD_MOST,
    LEASE_US,
    SLOW_AFTER_US,
    CapacityLimits,
    DestinationDemand,
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
    where d.org = e.org and d.id = e.destination and s.kind <> 'mail')
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

_BACKLOG = f"""
{ACTIVE}
select u.pending, u.dead,
  (select count(*) from destinations d where d.failures > 0
     and not exists (select from subscribers s where s.org = d.org and s.id = d.subscriber
       and (s.kind <> 'mail' or s.confirmed_at is null))),
  (select min(a.due_at) {_FREE_TO_GO})
from (
  select count(*) filter (where status = 'pending') as pending,
    count(*) filter (where status = 'dead' and topic <> 'subscription') as dead
  from outbox where status <> 'delivered') u
"""


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


async def lock_due(tx: Tx, wanted: Sequence[tuple[DestinationDemand, int]]) -> list[DueEvent]:
    """Locks due events of each destination, up to its count, longest due first."""
    tx.lock_rank(LockRank.OUTBOX, "events that are due")
    return await tx.structs(
        DueEvent,
        _LOCK_DUE,
        orgs=[demand.org for demand, _ in wanted],
        destinations=[demand.destination for demand, _ in wanted],
        counts=[count for _, count in wanted],
        now=tx.now,
    )


async def lease(tx: Tx, due: Sequence[DueEvent], name: UUID) -> list[Leased]:
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


async def select_backlog(tx: Tx) -> Backlog:
    found = await tx.row(_BACKLOG, now=tx.now)
    assert found is not None, "counts are always there"
    pending, dead, failing, oldest_due_at = found
    return Backlog(tx.now, pending, dead, failing, oldest_due_at)


def _demand(
    org: int, destination: int, is_page: bool, failures: int, held: int, due: int
) -> DestinationDemand:
    return DestinationDemand(org, destination, is_page, failures, held, due)
