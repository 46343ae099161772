"""Wakeups: composites to evaluate again because they or a child changed."""

from collections.abc import Sequence

from ...core.instant import Instant
from ...core.key import MonitorKey, key_arrays
from ...engine.pools import Tx
from ..rules.monitor_state import StatusChange

_WAKE = """
insert into composite_wakeups (org, monitor, due_at)
values (%(org)s, %(monitor)s, at(%(due)s))
on conflict (org, monitor) do update set
  due_at = least(composite_wakeups.due_at, excluded.due_at)
"""

_WAKE_PARENTS = """
insert into composite_wakeups (org, monitor, due_at)
select distinct c.org, c.monitor, at(%(now)s)
from composite_terms c
where c.children && %(monitors)s::int[] and c.org = any(%(orgs)s::int[])
  and c.until_at = 'infinity'
order by c.org, c.monitor
on conflict (org, monitor) do update set
  due_at = least(composite_wakeups.due_at, excluded.due_at)
"""

# Skips locked rows: the process that locked a wakeup evaluates it.
_POP_WAKEUPS = """
delete from composite_wakeups where (org, monitor) in (
  select c.org, c.monitor from composite_wakeups c
    join unnest(%(orgs)s::int[], %(monitors)s::int[]) as k(org, monitor)
      on k.org = c.org and k.monitor = c.monitor
  where c.due_at <= at(%(now)s)
  order by c.org, c.monitor for update of c skip locked)
returning org, monitor
"""


async def wake_composites(tx: Tx, key: MonitorKey, due: Instant) -> None:
    """Requests an evaluation without a window. An edit calls it before it locks states."""
    await tx.execute(_WAKE, org=key[0], monitor=key[1], due=due)


async def wake_parents(tx: Tx, flips: Sequence[StatusChange]) -> None:
    """Wakes the composites with children whose status has changed."""
    await wake_parents_of(tx, [MonitorKey((flip.org, flip.monitor)) for flip in flips])


async def wake_parents_of(tx: Tx, keys: Sequence[MonitorKey]) -> None:
    orgs, monitors = {org for org, _ in keys}, {monitor for _, monitor in keys}
    if orgs:
        given = {"orgs": sorted(orgs), "monitors": sorted(monitors)}
        await tx.execute(_WAKE_PARENTS, **given, now=tx.now)


async def pop_wakeups(tx: Tx, keys: Sequence[MonitorKey]) -> set[MonitorKey]:
    """Deletes the due wakeups among `keys` and returns them. A later change inserts another."""
    rows = await tx.rows(_POP_WAKEUPS, **key_arrays(keys, "monitors"), now=tx.now)
    return {MonitorKey((org, monitor)) for org, monitor in rows}
