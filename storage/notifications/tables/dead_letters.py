"""Dead letters and their replay. A dead letter blocks the later events of its stream."""

from typing import Final
from uuid import UUID

import msgspec

from ...engine.pools import LockRank, Tx

# Dead letters per transaction.
BATCH_MOST: Final = 5_000

_AFTER = """
select o.org, o.id, o.uid, o.destination from outbox o
where o.status = 'dead' and o.topic <> 'subscription' and o.id > %(after)s
order by o.id limit %(most)s
"""
_BY_UID = """
select o.org, o.id, o.uid, o.destination from outbox o
where o.uid = %(uid)s and o.status = 'dead' and o.topic <> 'subscription'
"""
# Runs before the update of the events, in the lock order of all writers. The destinations are due
# immediately too, since the replay implies that they are reachable again.
_WAKE_DESTINATIONS = """
update destinations d set backoff_until = null
where (d.org, d.id) in (
  select e.org, e.id from unnest(%(orgs)s::int[], %(ids)s::int[]) as t(org, id)
    join destinations e on e.org = t.org and e.id = t.id
  order by e.org, e.id for no key update of e)
"""
_REPLAY = """
update outbox o set status = 'pending', attempts = 0, due_at = at(%(now)s), updated_at = at(%(now)s)
where o.org = any(%(orgs)s::int[]) and o.id in (
  select e.id from unnest(%(orgs)s::int[], %(ids)s::bigint[]) as t(org, id)
    join outbox e on e.org = t.org and e.id = t.id and e.status = 'dead'
  for no key update of e{waiting})
returning o.uid
"""
_REPLAY_WAITING = _REPLAY.replace("{waiting}", "")
_REPLAY_FREE = _REPLAY.replace("{waiting}", " skip locked")


class Dead(msgspec.Struct, frozen=True):
    org: int
    id: int
    uid: UUID
    destination: int


async def select_dead(tx: Tx, uid: UUID) -> Dead | None:
    return await tx.one(Dead, _BY_UID, uid=uid)


async def select_dead_after(tx: Tx, after: int) -> list[Dead]:
    """Returns the next BATCH_MOST dead letters by id."""
    return await tx.structs(Dead, _AFTER, after=after, most=BATCH_MOST)


async def replay(tx: Tx, dead: list[Dead], *, wait: bool) -> set[UUID]:
    """Makes the events due, with their attempts reset. Returns those that were still dead.

    Without `wait`, skips events that a writer of their stream has locked, since this transaction
    already has many locks.
    """
    tx.lock_rank(LockRank.OUTBOX, "failed events")
    orgs = [item.org for item in dead]
    destinations = [item.destination for item in dead]
    await tx.execute(_WAKE_DESTINATIONS, orgs=orgs, ids=destinations)
    statement = _REPLAY_WAITING if wait else _REPLAY_FREE
    rows = await tx.rows(statement, orgs=orgs, ids=[item.id for item in dead], now=tx.now)
    return {row[0] for row in rows}
