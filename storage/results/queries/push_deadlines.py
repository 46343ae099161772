"""Deadlines of push monitors, from which a process schedules its next check."""

from collections.abc import Sequence

from ...core.instant import SECOND, Instant
from ...core.key import MonitorKey
from ...engine.pools import Tx
from ...scheduling.rules.run_schedule import ScheduleTerm, deadline_after_missed, deadline_of

_SELECT = """
select m.org, m.id, m.shard, h.ts, h.msg is not distinct from 'push_missed',
  -- A deadline under the settings before an edit can have passed.
  m.updated_at > at(%(now)s) - interval '1 minute',
  m.interval_seconds, m.grace_seconds, m.schedule, m.timezone
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
    return [
        (MonitorKey((org, monitor)), shard, _deadline(*rest)) for org, monitor, shard, *rest in rows
    ]


def _deadline(
    newest: Instant | None,
    is_missed: bool,
    is_edited: bool,
    interval_seconds: int,
    grace_seconds: int,
    schedule: str,
    timezone: str,
) -> Instant | None:
    if newest is None or is_edited:
        return newest
    term = ScheduleTerm(
        from_=newest,
        anchor=newest,
        interval_us=interval_seconds * SECOND,
        timeout_us=0,
        grace_us=grace_seconds * SECOND,
        schedule=schedule,
        timezone=timezone,
    )
    return deadline_after_missed(newest, term) if is_missed else deadline_of(newest, term)
