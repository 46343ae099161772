"""Monitors with a slow warning, for the API and the console."""

from collections.abc import Sequence
from typing import Final

from ...core.instant import Instant
from ...core.key import MonitorKey, key_arrays
from ...engine.pools import Tx

_SELECT: Final = """
select w.org, w.monitor, w.since_at
from unnest(%(orgs)s::int[], %(monitors)s::int[]) as k(org, monitor)
  join slow_warnings w on w.org = k.org and w.monitor = k.monitor
  join monitors m on m.org = k.org and m.id = k.monitor
where m.enabled and w.since_at is not null
"""


async def select_slow(tx: Tx, keys: Sequence[MonitorKey]) -> dict[MonitorKey, Instant]:
    """Returns since when each of the monitors is slow that is, without paused ones."""
    rows = await tx.rows(_SELECT, **key_arrays(keys, "monitors"))
    return {MonitorKey((org, monitor)): since for org, monitor, since in rows}
