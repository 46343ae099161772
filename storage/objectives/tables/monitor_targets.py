"""What is aimed at for a monitor over a window, in percent × 10⁴."""

from collections.abc import Iterable
from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from ...core.instant import Instant
from ...engine.pools import Tx

Key = tuple[int, int]

_SELECT = """
select t.org, t.monitor, t."window", t.uid, t.objective, t.burn_enabled, t.created_at, t.updated_at
from monitor_targets t
  join unnest(%(orgs)s::int[], %(monitors)s::int[]) as k(org, monitor)
    on k.org = t.org and k.monitor = t.monitor
order by t.org, t.monitor
"""
_PUT = """
insert into monitor_targets (org, monitor, "window", uid, objective, burn_enabled, created_at,
  updated_at)
values (%(org)s, %(monitor)s, %(window)s, %(uid)s, %(objective)s, %(burn)s, at(%(now)s),
  at(%(now)s))
on conflict (org, monitor, "window") do update set objective = excluded.objective,
  burn_enabled = excluded.burn_enabled, updated_at = excluded.updated_at
"""


class MonitorTarget(msgspec.Struct, frozen=True):
    org: int
    monitor: int
    window: str
    uid: UUID
    objective: int
    burn_enabled: bool
    created_at: Instant
    updated_at: Instant


async def select_monitor_targets(
    tx: Tx, monitors: Iterable[Key]
) -> dict[Key, dict[str, MonitorTarget]]:
    """By monitor, and by window; monitors without any are missing."""
    keys = list(monitors)
    found: dict[Key, dict[str, MonitorTarget]] = {}
    orgs, ids = [k[0] for k in keys], [k[1] for k in keys]
    for row in await tx.structs(MonitorTarget, _SELECT, orgs=orgs, monitors=ids):
        found.setdefault((row.org, row.monitor), {})[row.window] = row
    return found


async def put_monitor_target(
    tx: Tx, key: Key, window: str, objective: int, *, burn_enabled: bool
) -> None:
    """The monitor is held."""
    await tx.execute(
        _PUT,
        org=key[0],
        monitor=key[1],
        window=window,
        uid=uuid7(),
        objective=objective,
        burn=burn_enabled,
        now=tx.now,
    )
