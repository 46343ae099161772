"""Deadlines of push monitors, from which a process schedules its next check."""

from collections.abc import Sequence

from ...core.instant import Instant
from ...core.key import MonitorKey
from ...engine.pools import Tx

_SELECT = """
select m.org, m.id, m.shard, case
  -- A deadline under the settings before an edit can have passed.
  when m.updated_at > at(%(now)s) - interval '1 minute' then h.ts
  else h.ts + make_interval(secs => m.interval_seconds
    + case when h.msg is not distinct from 'push_missed' then 0 else m.grace_seconds end) end
from monitors m left join lateral newest_heartbeat(m.org, m.id, 'infinity') h on true
where m.type = 'push' and m.shard = any(%(shards)s)
  -- A deadline can have passed just before the monitor was paused.
  and (m.enabled or m.updated_at > at(%(now)s) - interval '1 minute')
"""


async def select_push_deadlines(
    tx: Tx, shards: Sequence[int]
) -> list[tuple[MonitorKey, int, Instant | None]]:
    """Returns (key, shard, lower bound of the next deadline), None before the first heartbeat."""
    rows = await tx.rows(_SELECT, shards=list(shards), now=tx.now)
    return [(MonitorKey((org, monitor)), shard, deadline) for org, monitor, shard, deadline in rows]
