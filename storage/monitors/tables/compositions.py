"""Compositions over time, composites to evaluate, and records of deleted members.

Invariant: terms are contiguous, because writing a term ends the previous one. Exactly one
composition governs each instant of a composite's life.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ...core.instant import Instant
from ...core.key import MonitorKey, key_arrays
from ...core.time_span import TimeSpan
from ...engine.pools import LockRank, Tx
from ..rules.composite import CompositeMode, Composition

_CURRENT = """
select from_at, mode, quorum, children from composite_terms
where org = %(org)s and monitor = %(monitor)s and until_at = 'infinity'
"""
_END = """
update composite_terms set until_at = at(%(at)s)
where org = %(org)s and monitor = %(monitor)s and until_at = 'infinity' and from_at <= at(%(at)s)
"""
# If two terms begin together, the later one replaces the earlier one.
_ADD = """
insert into composite_terms (org, monitor, from_at, mode, quorum, children)
values (%(org)s, %(monitor)s, at(%(at)s), %(mode)s, %(quorum)s, %(children)s::int[])
on conflict (org, monitor, from_at) do update set mode = excluded.mode,
  quorum = excluded.quorum, children = excluded.children, until_at = 'infinity'
"""

_OF_PROJECT = """
select c.monitor, c.children from composite_terms c
  join monitors m on m.org = c.org and m.id = c.monitor
where c.org = %(org)s and m.project = %(project)s and c.until_at = 'infinity'
"""
_PARENT_SLUG = """
select m.slug from composite_terms c join monitors m on m.org = c.org and m.id = c.monitor
where c.org = %(org)s and c.children @> array[%(monitor)s]::int[] and c.until_at = 'infinity'
order by m.slug limit 1
"""
# Changes of compositions and deletions of monitors are serialized per project: two concurrent edits
# could create a cycle that neither of them detects.
_HOLD_OF_PROJECT = "select from projects where uid = %(project)s for no key update"
_HOLD_OF_MONITOR = """
select from projects p where (p.org, p.id) = (
  select m.org, m.project from monitors m where m.uid = %(monitor)s
    and (m.type = 'composite' or not %(only_composites)s))
for no key update
"""

# Compositions in force in [from, to) of the given composites and all their descendants.
_BENEATH = """
with recursive beneath(org, monitor) as (
  select * from unnest(%(orgs)s::int[], %(monitors)s::int[])
  union
  select c.org, child from beneath b
    join composite_terms c on c.org = b.org and c.monitor = b.monitor
      and c.from_at < at(%(to_at)s) and c.until_at > at(%(from_at)s)
    cross join unnest(c.children) as child)
select c.org, c.monitor, c.from_at, c.until_at, c.mode, c.quorum, c.children
from beneath b join composite_terms c on c.org = b.org and c.monitor = b.monitor
  and c.from_at < at(%(to_at)s) and c.until_at > at(%(from_at)s)
order by c.org, c.monitor, c.from_at
"""
# All ancestors of the monitors in [from, to).
_ABOVE = """
with recursive above(monitor) as (
  select * from unnest(%(monitors)s::int[])
  union
  select c.monitor from above a
    join composite_terms c on c.children @> array[a.monitor]
      and c.org = %(org)s and c.from_at < at(%(to_at)s) and c.until_at > at(%(from_at)s))
select monitor from above where monitor <> all(%(monitors)s::int[])
"""
_TYPES = """
select org, id, type from known_monitors
where (org, id) in (select * from unnest(%(orgs)s::int[], %(monitors)s::int[]))
"""

_DROP_WAKEUP = "delete from composite_wakeups where org = %(org)s and monitor = %(monitor)s"

_DROP_SETTLED = """
delete from run_batches s
where s.id = any(%(ids)s) and s.kind = 'composite' and not exists (
  select from unnest(s.orgs, s.monitors, s.due_ats) as w(org, monitor, due)
  where not exists (select from verdict_of(w.org, w.monitor, w.due)))
"""

_DEPART = """
with gone as (
  insert into deleted_monitors (org, id, project, type, deleted_at)
  select m.org, m.id, m.project, m.type, at(%(now)s) from monitors m
  where m.org = %(org)s and m.id = %(monitor)s
    and (exists (select from composite_terms c where c.org = m.org
        and c.children @> array[%(monitor)s]::int[])
      or exists (select from service_revisions r where r.org = m.org
        and r.monitors @> array[%(monitor)s]::int[]))
  returning org, id),
terms as (
  insert into deleted_monitor_terms (org, monitor, from_at, shard, anchor, interval_seconds,
    timeout_seconds, grace_seconds, enabled, schedule, timezone)
  select t.org, t.monitor, t.from_at, t.shard, t.anchor, t.interval_seconds, t.timeout_seconds,
    t.grace_seconds, t.enabled, t.schedule, t.timezone
  from gone join monitor_terms t on t.org = gone.org and t.monitor = gone.id)
select exists (select from gone)
"""
_FORGET_TERMS = "delete from composite_terms where until_at < at(%(before)s)"
# The packer locks archived monitors in the same order.
_FORGET_DELETED = """
with old as materialized (
  select d.org, d.id from deleted_monitors d where d.deleted_at < at(%(before)s)
    and not exists (select from composite_terms c where c.org = d.org
      and c.children @> array[d.id])
  order by d.org, d.id limit %(most)s for update)
delete from deleted_monitors d using old where d.org = old.org and d.id = old.id
returning d.org, d.id
"""


class CurrentComposition(msgspec.Struct, frozen=True):
    """Current composition of a composite."""

    from_at: Instant
    mode: str
    quorum: int
    children: list[int]


async def select_current(tx: Tx, key: MonitorKey) -> CurrentComposition | None:
    return await tx.one(CurrentComposition, _CURRENT, org=key[0], monitor=key[1])


async def add_composition(
    tx: Tx, key: MonitorKey, mode: str, quorum: int, children: Sequence[int], now: Instant
) -> None:
    """Writes a composition from now on, or from the previous one's start if that is later.

    The composite must be locked or new.
    """
    before = await select_current(tx, key)
    at = now if before is None else max(now, before.from_at)
    await tx.execute(_END, org=key[0], monitor=key[1], at=at)
    await tx.execute(
        _ADD,
        org=key[0],
        monitor=key[1],
        at=at,
        mode=mode,
        quorum=quorum,
        children=list(children),
    )


async def lock_compositions_of(tx: Tx, project: object) -> None:
    """Locks the compositions of a project until the transaction ends."""
    tx.lock_rank(LockRank.PROJECT, "compositions of a project")
    await tx.rows(_HOLD_OF_PROJECT, project=project)


async def lock_compositions_around(
    tx: Tx, monitor: object, *, only_composites: bool = False
) -> None:
    """Locks the compositions of a monitor's project.

    With `only_composites`, locks only if the monitor is a composite, since an edit gives other
    types no children.
    """
    tx.lock_rank(LockRank.PROJECT, "compositions around a monitor")
    await tx.rows(_HOLD_OF_MONITOR, monitor=monitor, only_composites=only_composites)


async def select_children(tx: Tx, org: int, project: int) -> dict[MonitorKey, list[MonitorKey]]:
    """Returns the current children of each composite of a project."""
    rows = await tx.rows(_OF_PROJECT, org=org, project=project)
    return {
        MonitorKey((org, monitor)): [MonitorKey((org, child)) for child in children]
        for monitor, children in rows
    }


async def select_parent_slug(tx: Tx, key: MonitorKey) -> str | None:
    """Returns the slug of a composite that has the monitor as a child, None without one."""
    slug: str | None = await tx.value(_PARENT_SLUG, org=key[0], monitor=key[1])
    return slug


async def select_beneath(
    tx: Tx, keys: Iterable[MonitorKey], within: TimeSpan
) -> dict[MonitorKey, list[Composition]]:
    """Returns compositions in force in a span, of the given monitors and all descendants."""
    pairs = list(keys)
    rows = await tx.rows(
        _BENEATH,
        **key_arrays(pairs, "monitors"),
        from_at=within.from_,
        to_at=within.until,
    )
    found: dict[MonitorKey, list[Composition]] = {}
    for org, monitor, from_, until, mode, quorum, children in rows:
        made_of = tuple(MonitorKey((org, child)) for child in children)
        made = Composition(from_, until, CompositeMode(mode), quorum, made_of)
        found.setdefault(MonitorKey((org, monitor)), []).append(made)
    return found


async def select_above(
    tx: Tx, org: int, monitors: Sequence[int], within: TimeSpan
) -> list[MonitorKey]:
    """Returns all ancestors of the monitors in a span, at any depth, without the monitors."""
    rows = await tx.rows(
        _ABOVE, org=org, monitors=list(monitors), from_at=within.from_, to_at=within.until
    )
    return [MonitorKey((org, monitor)) for (monitor,) in rows]


async def select_types(tx: Tx, keys: Iterable[MonitorKey]) -> dict[MonitorKey, str]:
    """Returns the types of monitors, including deleted ones."""
    pairs = list(keys)
    rows = await tx.rows(_TYPES, **key_arrays(pairs, "monitors"))
    return {MonitorKey((org, monitor)): kind for org, monitor, kind in rows}


async def drop_settled_batches(tx: Tx, batches: Sequence[int]) -> int:
    """Deletes the composite batches among `batches` in which each window has a ledger row."""
    return await tx.execute(_DROP_SETTLED, ids=list(batches))


async def archive_monitor(tx: Tx, key: MonitorKey, now: Instant) -> bool:
    """Records a monitor before its deletion, for the compositions and declarations that name it.

    Returns False, without a record, if none names it.
    """
    archived: bool = await tx.value(_DEPART, org=key[0], monitor=key[1], now=now)
    await tx.execute(_END, org=key[0], monitor=key[1], at=now)
    await tx.execute(_DROP_WAKEUP, org=key[0], monitor=key[1])
    return archived


async def forget(tx: Tx, before: Instant, most: int) -> list[MonitorKey]:
    """Deletes old compositions, and up to `most` archived monitors that no remaining one has.

    Returns those monitors. Their pieces are deleted in the same transaction.
    """
    await tx.execute(_FORGET_TERMS, before=before)
    rows = await tx.rows(_FORGET_DELETED, before=before, most=most)
    return [MonitorKey((org, monitor)) for org, monitor in rows]


def children_of(
    made: Mapping[MonitorKey, Sequence[Composition]],
) -> dict[MonitorKey, list[MonitorKey]]:
    """Returns the children of each composite, for compositions in force at one instant."""
    return {key: [child for c in found for child in c.children] for key, found in made.items()}
