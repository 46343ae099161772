"""Shards and the terms of their monitors: how far reservation has come, and from what.

`reserved_through` only moves forward and only under the generation that was computed from, so no
window is reserved twice and none is passed over, however many tickers try.
"""

from collections.abc import Collection, Iterable, Sequence
from uuid import UUID

import msgspec

from ...core.instant import Instant
from ...core.key import MonitorKey, key_arrays
from ...engine.pools import LockRank, Tx
from ..rows import NewTerm, Shard
from ..rules.run_batch import RunBatch, WithheldWindow
from ..rules.run_schedule import ScheduleTerm

_FOUND_SHARD = """
insert into shards (org, region, reserved_through, sealed_through, settled_through,
  rolled_up_through)
values (%(org)s, %(region)s, at(%(now)s), at(%(now)s), at(%(now)s),
  date_trunc('hour', at(%(now)s), 'UTC'))
on conflict (org, region) do nothing
"""

_RESERVED_THROUGH = "select reserved_through from shards where id = %(shard)s"

_SHARD_ID = "select id from shards where org = %(org)s and region = %(region)s"

# The edit's statement: it raises the generation, so that reservations computed from the old terms
# are refused, and new terms begin where reservation stands. The last write before the commit.
# Never before the term it follows, which another region's cursor may have put further ahead.
_ADD_TERMS = """
with edited as (
  update shards set generation = generation + 1 where id = any(%(shards)s::int[])
  returning id, reserved_through)
insert into monitor_terms (org, monitor, from_at, shard, anchor, interval_seconds,
  timeout_seconds, grace_seconds, enabled)
select i.org, i.monitor, greatest(e.reserved_through, at(i.from_at), (select max(t.from_at)
    from monitor_terms t where t.org = i.org and t.monitor = i.monitor)),
  i.shard, at(i.anchor), i.interval_seconds, i.timeout_seconds, i.grace_seconds, i.enabled
from json_to_recordset(%(items)s::json) as i(org int, monitor int, from_at bigint, shard int,
    anchor bigint, interval_seconds int, timeout_seconds int, grace_seconds int, enabled boolean)
  join edited e on e.id = i.shard
order by i.org, i.monitor
on conflict (org, monitor, from_at) do update set shard = excluded.shard,
  anchor = excluded.anchor, interval_seconds = excluded.interval_seconds,
  timeout_seconds = excluded.timeout_seconds, grace_seconds = excluded.grace_seconds,
  enabled = excluded.enabled
returning org, monitor, from_at
"""

_RAISE_GENERATION = """
update shards set generation = generation + 1 where id = %(shard)s returning generation
"""

# The hours of a monitor that comes from another region are made here from now on: from the first
# that was not certainly made there. Making the others' again changes nothing.
_TAKE_OVER_FIGURES = """
update shards set rolled_up_through = least(rolled_up_through,
  (select f.rolled_up_through from shards f where f.id = %(before)s) - interval '1 hour')
where id = %(shard)s
"""

# Terms still needed: the one in force at the cursor and whatever begins after it.
_TERMS_AFTER = """
select t.org, t.monitor, m.type, t.from_at, t.anchor, t.interval_seconds, t.timeout_seconds,
  t.grace_seconds, t.enabled, t.shard
from monitor_terms t join monitors m on m.org = t.org and m.id = t.monitor
-- Also monitors that have left: the terms they had here are reserved up to the change.
where (t.org, t.monitor) in (select h.org, h.monitor from monitor_terms h where h.shard = %(shard)s)
  and t.from_at >= coalesce(
    (select max(f.from_at) from monitor_terms f
     where f.org = t.org and f.monitor = t.monitor and f.from_at <= at(%(after)s)), '-infinity')
order by t.org, t.monitor, t.from_at
"""

_TERMS_OF = """
select org, monitor, from_at, anchor, interval_seconds, timeout_seconds, grace_seconds, enabled,
  shard
from known_terms
where (org, monitor) in (select * from unnest(%(orgs)s::int[], %(monitors)s::int[]))
order by org, monitor, from_at
"""


_RESERVE = """
with moved as (
  update shards set reserved_through = at(%(through)s)
  where id = %(shard)s and reserved_through = at(%(after)s) and generation = %(generation)s
  returning id),
spared as (
  insert into expected_runs (org, monitor, due_at, settled_at, verdict, reason)
  select w.org, w.monitor, at(w.due), at(%(now)s), 'withheld', w.reason
  from moved, json_to_recordset(%(withheld)s::json) as w(org int, monitor int, due bigint,
    reason text)
  order by w.org, w.monitor, w.due
  on conflict do nothing),
sliced as (
  insert into run_batches (shard, kind, orgs, monitors, due_ats, seal_ats, claim_untils, published,
    first_due, claim_until, first_seal, last_seal, holder, claimed)
  select moved.id, s.kind, s.orgs, s.monitors,
    array(select at(x) from unnest(s.due_ats) x), array(select at(x) from unnest(s.seal_ats) x),
    array(select at(x) from unnest(s.claim_untils) x), s.published,
    at(s.first_due), at(s.claim_until), at(s.first_seal), at(s.last_seal),
    case when s.kind = 'run' and s.published then %(holder)s::uuid end,
    s.kind = 'run' and s.published and %(holder)s::uuid is not null
  from moved, json_to_recordset(%(batches)s::json) as s(kind text, orgs int[], monitors int[],
    due_ats bigint[], seal_ats bigint[], claim_untils bigint[], published boolean, first_due bigint,
    claim_until bigint, first_seal bigint, last_seal bigint)
  returning id, first_due, orgs, monitors)
select (select count(*) from moved), coalesce((select array_agg(id order by id) from sliced), '{}')
"""


async def ensure_shard(tx: Tx, org: int, region: str, now: Instant) -> int:
    """The shard of a region; a new one begins now, as nothing was due there before."""
    tx.lock_rank(LockRank.SHARD, "a shard that may be new")
    await tx.execute(_FOUND_SHARD, org=org, region=region, now=now)
    shard: int = await tx.value(_SHARD_ID, org=org, region=region)
    return shard


async def select_shard_id(tx: Tx, org: int, region: str) -> int | None:
    found: int | None = await tx.value(_SHARD_ID, org=org, region=region)
    return found


async def select_reserved_through(tx: Tx, shard: int) -> Instant:
    instant: Instant = await tx.value(_RESERVED_THROUGH, shard=shard)
    return instant


async def add_terms(
    tx: Tx, terms: Sequence[NewTerm], shards: Collection[int]
) -> dict[MonitorKey, Instant]:
    """Writes new terms, raises the generation of all the shards, and returns the instants from
    which they govern. The caller holds the shards already, so that locks are taken in their
    order."""
    items = msgspec.json.encode(terms).decode()
    rows = await tx.rows(_ADD_TERMS, items=items, shards=sorted(shards))
    return {MonitorKey((org, monitor)): from_at for org, monitor, from_at in rows}


async def raise_generation(tx: Tx, shard: int) -> int:
    """Makes every reservation that was computed before refuse itself."""
    generation: int = await tx.value(_RAISE_GENERATION, shard=shard)
    return generation


async def take_over_figures(tx: Tx, shard: int, before: int) -> None:
    """A monitor moves here from another shard; the caller holds both."""
    await tx.execute(_TAKE_OVER_FIGURES, shard=shard, before=before)


async def select_terms_after(
    tx: Tx, shard: int, after: Instant
) -> list[tuple[int, int, str, ScheduleTerm]]:
    """(org, monitor, type, term) of a shard's monitors, from the term in force at `after` on."""
    rows = await tx.rows(_TERMS_AFTER, shard=shard, after=after)
    return [(org, monitor, kind, _term(*rest)) for org, monitor, kind, *rest in rows]


async def select_terms_of(
    tx: Tx, keys: Iterable[MonitorKey]
) -> dict[MonitorKey, list[ScheduleTerm]]:
    """All terms of the monitors named, oldest first; also of those that have departed."""
    pairs = list(keys)
    rows = await tx.rows(_TERMS_OF, **key_arrays(pairs, "monitors"))
    found: dict[MonitorKey, list[ScheduleTerm]] = {}
    for org, monitor, *rest in rows:
        found.setdefault(MonitorKey((org, monitor)), []).append(_term(*rest))
    return found


async def reserve(
    tx: Tx,
    shard: Shard,
    through: Instant,
    batches: Sequence[RunBatch],
    spared: Sequence[WithheldWindow],
    holder: UUID | None,
) -> list[int] | None:
    """Moves the cursor and writes what lies behind it; the new batches' ids in the order given, or
    None where the cursor or the generation is no longer what was read."""
    row = await tx.row(
        _RESERVE,
        shard=shard.id,
        after=shard.reserved_through,
        through=through,
        generation=shard.generation,
        batches=msgspec.json.encode(batches).decode(),
        withheld=msgspec.json.encode(spared).decode(),
        holder=holder,
        now=tx.now,
    )
    assert row is not None, "an aggregate answers with one row"
    moved, ids = row
    return list(ids) if moved else None


def _term(
    from_at: Instant,
    anchor: Instant,
    interval_seconds: int,
    timeout_seconds: int,
    grace_seconds: int,
    enabled: bool,
    shard: int,
) -> ScheduleTerm:
    return ScheduleTerm(
        from_=from_at,
        anchor=anchor,
        interval_us=interval_seconds * 1_000_000,
        timeout_us=timeout_seconds * 1_000_000,
        grace_us=grace_seconds * 1_000_000,
        enabled=enabled,
        shard=shard,
    )
