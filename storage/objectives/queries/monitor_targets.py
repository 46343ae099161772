"""Read-only SQL of monitor targets."""

from collections.abc import Iterable

from ...core.key import MonitorKey
from ...engine.pools import Tx
from ..rows import MonitorTarget

_SELECT = """
select t.org, t.monitor, t."window", t.uid, t.objective, t.burn_enabled, t.created_at, t.updated_at
from monitor_targets t
  join unnest(%(orgs)s::int[], %(monitors)s::int[]) as k(org, monitor)
    on k.org = t.org and k.monitor = t.monitor
order by t.org, t.monitor
"""


async def select_monitor_targets(
    tx: Tx, monitors: Iterable[MonitorKey]
) -> dict[MonitorKey, dict[str, MonitorTarget]]:
    """Returns targets by monitor and window. Monitors without targets are omitted."""
    keys = list(monitors)
    found: dict[MonitorKey, dict[str, MonitorTarget]] = {}
    orgs, ids = [k[0] for k in keys], [k[1] for k in keys]
    for row in await tx.structs(MonitorTarget, _SELECT, orgs=orgs, monitors=ids):
        found.setdefault(MonitorKey((row.org, row.monitor)), {})[row.window] = row
    return found
