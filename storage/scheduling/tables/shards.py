"""Shards and the terms of their monitors.

Invariant: `reserved_through` only increases, under the exclusive lock of `schedule_edits`. No
window is reserved twice and none is skipped.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from uuid import UUID

import msgspec

from ...core.instant import Instant
from ...core.key import MonitorKey, ProjectKey, key_arrays
from ...engine.pools import LockRank, Tx
from ..rows import NewTerm
from ..rules.run_batch import RunBatch, WithheldWindow
from ..rules.run_schedule import ResultMode, ScheduleTerm

_FOUND_SHARD = """
insert into shards (org, region, reserved_through, sealed_through, settled_through,
  rolled_up_through)
values (%(org)s, %(region)s, at(%(now)s), at(%(now)s), at(%(now)s),
  date_trunc('hour', at(%(now)s), 'UTC'))
on conflict (org, region) do nothing
"""

_SHARD_ID = "select id from shards where org = %(org)s and region = %(region)s"

# New terms begin at the reservation cursor, or later by `ahead_us`. They never begin before the
# monitor's previous term, which the cursor of another region may have put further ahead. Terms with
# `ahead_us` begin after that term: until the commit, reservation still uses it.
_ADD_TERMS = """
insert into monitor_terms (org, monitor, from_at, shard, anchor, interval_seconds,
  timeout_seconds, grace_seconds, enabled, schedule, timezone)
select i.org, i.monitor, greatest(
    s.reserved_through + %(ahead_us)s * interval '1 microsecond', at(i.from_at),
    (select max(t.from_at) from monitor_terms t where t.org = i.org and t.monitor = i.monitor)
      + case when %(ahead_us)s > 0 then interval '1 microsecond' else '0' end),
  i.shard, at(i.anchor), i.interval_seconds, i.timeout_seconds, i.grace_seconds, i.enabled,
  i.schedule, i.timezone
from json_to_recordset(%(items)s::json) as i(org int, monitor int, from_at bigint, shard int,
    anchor bigint, interval_seconds int, timeout_seconds int, grace_seconds int, enabled boolean,
    schedule text, timezone text)
  join shards s on s.id = i.shard
order by i.org, i.monitor
on conflict (org, monitor, from_at) do update set shard = excluded.shard,
  anchor = excluded.anchor, interval_seconds = excluded.interval_seconds,
  timeout_seconds = excluded.timeout_seconds, grace_seconds = excluded.grace_seconds,
  enabled = excluded.enabled, schedule = excluded.schedule, timezone = excluded.timezone
returning org, monitor, from_at
"""

_MOVE_TERMS = """
update monitor_terms t set from_at = at(i.to_at)
from json_to_recordset(%(items)s::json) as i(org int, monitor int, from_at bigint, to_at bigint)
where t.org = i.org and t.monitor = i.monitor and t.from_at = at(i.from_at)
"""

_RESERVED_OF = """
select id, reserved_through from shards where id = any(%(shards)s::int[])
"""

# This shard rolls up the hours of a monitor that moves here, from the first hour that the old shard
# has not certainly rolled up. Repeating the hours of the other monitors changes no values.
_TAKE_OVER_FIGURES = """
update shards set rolled_up_through = least(rolled_up_through,
  (select f.rolled_up_through from shards f where f.id = %(before)s) - interval '1 hour')
where id = %(shard)s
"""

# Selects the term in force at the cursor and all later ones.
_TERMS_AFTER = """
select t.org, t.monitor,
  case m.type when 'push' then 'push' when 'composite' then 'composite' else 'probe' end,
  m.type = 'async_canary', t.from_at, t.anchor, t.interval_seconds, t.timeout_seconds,
  t.grace_seconds, t.enabled, t.shard, t.schedule, t.timezone
from monitor_terms t join monitors m on m.org = t.org and m.id = t.monitor
-- Includes monitors that have moved away: their terms here are reserved up to the change.
where (t.org, t.monitor) in (select h.org, h.monitor from monitor_terms h
    where h.shard = %(shard)s and (%(all)s or h.monitor = any(%(named)s::int[])))
  and t.from_at >= coalesce(
    (select max(f.from_at) from monitor_terms f
     where f.org = t.org and f.monitor = t.monitor and f.from_at <= at(%(after)s)), '-infinity')
order by t.org, t.monitor, t.from_at
"""

_MONITORS_OF_PROJECTS = """
select m.id from monitors m
where (m.org, m.project) in (select * from unnest(%(orgs)s::int[], %(projects)s::int[]))
  and exists (select from monitor_terms t
    where t.org = m.org and t.monitor = m.id and t.shard = %(shard)s)
"""

_TERMS_OF = """
select org, monitor, from_at, anchor, interval_seconds, timeout_seconds, grace_seconds, enabled,
  shard, schedule, timezone
from known_terms
where (org, monitor) in (select * from unnest(%(orgs)s::int[], %(monitors)s::int[]))
order by org, monitor, from_at
"""


_RESERVE = """
with moved as (
  update shards set reserved_through = at(%(through)s)
  where id = %(shard)s
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
select coalesce((select array_agg(id order by id) from sliced), '{}')
"""


async def ensure_shard(tx: Tx, org: int, region: str, now: Instant) -> int:
    """Returns the shard of a region. A new shard begins now, since it has no earlier windows."""
    tx.lock_rank(LockRank.REGION, "a region that may be new")
    await tx.execute(_FOUND_SHARD, org=org, region=region, now=now)
    shard: int = await tx.value(_SHARD_ID, org=org, region=region)
    return shard


async def select_shard_id(tx: Tx, org: int, region: str) -> int | None:
    found: int | None = await tx.value(_SHARD_ID, org=org, region=region)
    return found


async def select_reserved_of(tx: Tx, shards: Collection[int]) -> dict[int, Instant]:
    """Returns the reservation cursor of each shard."""
    return dict(await tx.rows(_RESERVED_OF, shards=sorted(shards)))


async def add_terms(
    tx: Tx, terms: Sequence[NewTerm], *, ahead_us: int = 0
) -> dict[MonitorKey, Instant]:
    """Writes new terms and returns the instants from which they govern.

    The instant is the reservation cursor, or `ahead_us` later. If the caller has not taken
    `lock_edits` of the shards, reservation may pass these instants before the commit.
    """
    if not terms:
        return {}
    items = msgspec.json.encode(terms).decode()
    rows = await tx.rows(_ADD_TERMS, items=items, ahead_us=ahead_us)
    return {MonitorKey((org, monitor)): from_at for org, monitor, from_at in rows}


async def move_terms(tx: Tx, moved: Mapping[MonitorKey, tuple[Instant, Instant]]) -> None:
    """Moves the starts of terms of this transaction, from the first to the second instant."""
    items = [
        {"org": org, "monitor": monitor, "from_at": from_at, "to_at": to_at}
        for (org, monitor), (from_at, to_at) in sorted(moved.items())
    ]
    if items:
        await tx.execute(_MOVE_TERMS, items=msgspec.json.encode(items).decode())


async def take_over_figures(tx: Tx, shard: int, before: int) -> None:
    """Moves the rollup cursor back for a monitor that moves here.

    Requires `lock_edits` of both shards.
    """
    await tx.execute(_TAKE_OVER_FIGURES, shard=shard, before=before)


async def select_terms_after(
    tx: Tx, shard: int, after: Instant, named: Collection[int] | None = None
) -> list[tuple[int, int, ResultMode, bool, ScheduleTerm]]:
    """Returns (org, monitor, mode, is canary, term) of a shard's monitors or of `named`.

    Terms begin with the term in force at `after`.
    """
    rows = await tx.rows(
        _TERMS_AFTER, shard=shard, after=after, all=named is None, named=sorted(named or ())
    )
    return [
        (org, monitor, ResultMode(manner), is_canary, _term(*rest))
        for org, monitor, manner, is_canary, *rest in rows
    ]


async def select_monitors_of_projects(
    tx: Tx, shard: int, projects: Sequence[ProjectKey]
) -> list[int]:
    """Returns the monitors of (organization, project) pairs that have a term in the shard."""
    rows = await tx.rows(
        _MONITORS_OF_PROJECTS,
        shard=shard,
        orgs=[org for org, _ in projects],
        projects=[project for _, project in projects],
    )
    return [monitor for (monitor,) in rows]


async def select_terms_of(
    tx: Tx, keys: Iterable[MonitorKey]
) -> dict[MonitorKey, list[ScheduleTerm]]:
    """Returns all terms of the monitors, oldest first, also in shards that they have left."""
    pairs = list(keys)
    rows = await tx.rows(_TERMS_OF, **key_arrays(pairs, "monitors"))
    found: dict[MonitorKey, list[ScheduleTerm]] = {}
    for org, monitor, *rest in rows:
        found.setdefault(MonitorKey((org, monitor)), []).append(_term(*rest))
    return found


async def reserve(
    tx: Tx,
    shard: int,
    through: Instant,
    batches: Sequence[RunBatch],
    spared: Sequence[WithheldWindow],
    holder: UUID | None,
) -> list[int]:
    """Moves the cursor and writes the windows before it. Requires `lock_reservation`.

    Returns the ids of the new batches in the order given.
    """
    ids: list[int] = await tx.value(
        _RESERVE,
        shard=shard,
        through=through,
        batches=msgspec.json.encode(batches).decode(),
        withheld=msgspec.json.encode(spared).decode(),
        holder=holder,
        now=tx.now,
    )
    return ids


def _term(
    from_at: Instant,
    anchor: Instant,
    interval_seconds: int,
    timeout_seconds: int,
    grace_seconds: int,
    enabled: bool,
    shard: int,
    schedule: str,
    timezone: str,
) -> ScheduleTerm:
    return ScheduleTerm(
        from_=from_at,
        anchor=anchor,
        interval_us=interval_seconds * 1_000_000,
        timeout_us=timeout_seconds * 1_000_000,
        grace_us=grace_seconds * 1_000_000,
        enabled=enabled,
        shard=shard,
        schedule=schedule,
        timezone=timezone,
    )
