"""Due composites, their definitions and the conditions of their members."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from ...core.instant import Instant
from ...core.key import MonitorKey, key_arrays
from ...core.sli import SliCondition
from ...core.time_span import TimeSpan
from ...engine.pools import Tx
from ...monitors.queries.monitors import MonitorStatusRow, select_standings, status_of
from ...monitors.rules.monitor_state import MonitorStatus
from ...scheduling.queries import shards
from ...scheduling.rules.maintenance_window import is_in_maintenance

_DUE_WINDOWS = """
select s.id, w.org, w.monitor, w.due, w.claim_until
from run_batches s
  cross join unnest(s.orgs, s.monitors, s.due_ats, s.claim_untils)
    as w(org, monitor, due, claim_until)
  -- Deleted monitors are omitted.
  join monitors m on m.org = w.org and m.id = w.monitor
where s.kind = 'composite' and s.published and s.first_due <= at(%(now)s)
  and s.claim_until > at(%(now)s) and w.due <= at(%(now)s) and w.claim_until > at(%(now)s)
  and not exists (select from verdict_of(w.org, w.monitor, w.due))
order by w.due, w.monitor limit %(most)s
"""
_DUE_WAKEUPS = """
select org, monitor from composite_wakeups where due_at <= at(%(now)s)
order by due_at, org, monitor limit %(most)s
"""

_COMPOSITES = """
select m.org, m.id, m.shard, m.revision, m.enabled, c.mode, c.quorum, c.children,
  array(select n.type from unnest(c.children) with ordinality as x(id, place)
    left join monitors n on n.org = m.org and n.id = x.id order by x.place)
from unnest(%(orgs)s::int[], %(monitors)s::int[]) as k(org, monitor)
  join monitors m on m.org = k.org and m.id = k.monitor
  join composite_terms c on c.org = m.org and c.monitor = m.id and c.until_at = 'infinity'
"""


class DueCompositeWindow(msgspec.Struct, frozen=True):
    """Due window of a composite without a result."""

    batch: int
    org: int
    monitor: int
    due: Instant
    claim_until: Instant

    @property
    def key(self) -> MonitorKey:
        return MonitorKey((self.org, self.monitor))


class Composite(msgspec.Struct, frozen=True):
    """Current definition of a composite, with parallel lists."""

    org: int
    id: int
    shard: int
    revision: int
    enabled: bool
    mode: str
    quorum: int
    children: list[int]
    child_types: list[str]

    @property
    def key(self) -> MonitorKey:
        return MonitorKey((self.org, self.id))


@dataclass(frozen=True, slots=True)
class MemberHealth:
    """Conditions of monitors at one instant."""

    now: Instant
    standings: Mapping[MonitorKey, MonitorStatusRow]
    maintenance: Mapping[int, Sequence[TimeSpan]]

    def of(self, key: MonitorKey, kind: str) -> SliCondition:
        """Returns excluded in maintenance, else the folded state while a result is fresh."""
        spans = self.maintenance.get(key[1], ())
        if is_in_maintenance(self.now, spans):
            return SliCondition.EXCLUDED
        match status_of(self.standings.get(key), kind, self.now, spans):
            case MonitorStatus.UP:
                return SliCondition.GOOD
            case MonitorStatus.DOWN:
                return SliCondition.BAD
            case MonitorStatus.PENDING:
                return SliCondition.UNKNOWN

    def is_in_maintenance(self, key: MonitorKey) -> bool:
        return is_in_maintenance(self.now, self.maintenance.get(key[1], ()))


async def select_due_windows(tx: Tx, now: Instant, most: int) -> list[DueCompositeWindow]:
    """Returns due, claimable windows without a row in the ledger, oldest first."""
    return await tx.structs(DueCompositeWindow, _DUE_WINDOWS, now=now, most=most)


async def select_due_wakeups(tx: Tx, now: Instant, most: int) -> list[MonitorKey]:
    return [
        MonitorKey((org, monitor))
        for org, monitor in await tx.rows(_DUE_WAKEUPS, now=now, most=most)
    ]


async def select_composites(tx: Tx, keys: Sequence[MonitorKey]) -> dict[MonitorKey, Composite]:
    """Returns the composites that still exist."""
    rows = await tx.structs(Composite, _COMPOSITES, **key_arrays(keys, "monitors"))
    return {row.key: row for row in rows}


async def select_health(tx: Tx, keys: Sequence[MonitorKey], now: Instant) -> MemberHealth:
    """Returns the conditions of monitors at an instant. Each monitor is read once."""
    standings = await select_standings(tx, keys, counted=False)
    # Also maintenance that is over: it ended the freshness of earlier results.
    since = min((s.last_at for s in standings.values() if s.last_at is not None), default=now)
    maintenance = await shards.select_maintenances(
        tx, min(since, now), monitors=[monitor for _, monitor in keys]
    )
    return MemberHealth(now, standings, maintenance)
