"""Monitors that are flapping, for the API and the console."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from ...core.instant import Instant
from ...core.key import MonitorKey, key_arrays
from ...engine.pools import Tx
from ..rules.flapping import SETTLED_US

# A monitor without an open outage is not looked at when it has settled.
_SELECT: Final = """
select f.org, f.monitor, f.since_at
from unnest(%(orgs)s::int[], %(monitors)s::int[]) as k(org, monitor)
  join flap_states f on f.org = k.org and f.monitor = k.monitor
  join monitors m on m.org = f.org and m.id = f.monitor and m.flap_threshold > 0
where f.since_at is not null and f.seen_at > at(%(now)s) - %(settled)s
"""


async def select_flapping(tx: Tx, keys: Sequence[MonitorKey]) -> dict[MonitorKey, Instant]:
    """Returns since when each of the monitors is flapping that is."""
    settled = timedelta(microseconds=SETTLED_US)
    rows = await tx.rows(_SELECT, **key_arrays(keys, "monitors"), settled=settled, now=tx.now)
    return {MonitorKey((org, monitor)): since for org, monitor, since in rows}
