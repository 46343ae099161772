"""Current state of the upstreams of monitors: possible causes of a failure.

A composite upstream is expanded to its children at any depth. The children can be run again, but
only the composite itself counts as a cause.
"""

from collections.abc import Mapping, Sequence

import msgspec

from ...core.instant import SECOND, Instant
from ...core.key import MonitorKey, key_arrays
from ...core.time_span import TimeSpan
from ...engine.pools import Tx
from ...monitors.queries.monitors import held_until, status_of
from ...monitors.rules.monitor_state import MonitorStatus
from ...monitors.tables import compositions
from ...results.queries.composites import MemberHealth, select_health
from ...scheduling.rules.maintenance_window import is_in_maintenance
from ..rules.suppression import Upstream

# Types of which an outage requests no extra run.
_NOT_PROBED = frozenset({"push", "composite", "async_canary"})

_EDGES = """
with recursive upstream(org, monitor, key) as (
  select m.org, m.id, d.key
  from unnest(%(orgs)s::int[], %(monitors)s::int[]) as k(org, monitor)
    join monitors m on m.org = k.org and m.id = k.monitor
    cross join unnest(m.depends_on) as d(key)
  union
  select u.org, u.monitor, d.key
  from upstream u join monitors m on m.org = u.org and m.id = u.key
    cross join unnest(m.depends_on) as d(key))
select org, monitor, key from upstream
"""
# A later wakeup only confirms a state, without a changed child. The second of tolerance allows for
# the clock of another process.
_KINDS = """
select m.org, m.id, m.type, m.shard, m.timeout_seconds,
  exists (select from composite_wakeups c where c.org = m.org and c.monitor = m.id
    and c.due_at <= at(%(now)s) + interval '1 second')
from unnest(%(orgs)s::int[], %(monitors)s::int[]) as k(org, monitor)
  join monitors m on m.org = k.org and m.id = k.monitor
"""
# One statement, because it runs twice a second and rarely finds a row.
_IS_DUE = """
select exists (select from status_changes)
  or exists (select from outages where ended_at is null and next_check_at <= at(%(now)s))
  or exists (select from incidents where escalate_at <= at(%(now)s))
  or exists (select from mutes where awaits_start and starts_at <= at(%(now)s))
"""
# Nothing is sent about what a deletion of its project is about to delete.
_GOING = """
select from monitors m join projects p on p.org = m.org and p.id = m.project
where m.org = {0}.org and m.id = {0}.monitor and p.deleting_since is not null
"""
_DUE = f"""
(select org, monitor from status_changes c where (org, monitor) <> all (
    select * from unnest(%(orgs)s::int[], %(monitors)s::int[]))
    and not exists ({_GOING.format("c")})
  group by org, monitor order by min(id) limit %(most)s)
union
(select org, monitor from outages o where ended_at is null and next_check_at <= at(%(now)s)
    and (org, monitor) <> all (select * from unnest(%(orgs)s::int[], %(monitors)s::int[]))
    and not exists ({_GOING.format("o")})
  order by next_check_at limit %(most)s)
"""
# Monitors that no status change leads to: the state and the outage disagree, or the re-notify
# interval was set or shortened during the outage.
_ASTRAY = f"""
(select s.org, s.monitor from monitor_states s left join lateral (
    -- A lateral join: after mass failures the statistics do not know the new outages yet.
    select o.id from outages o
    where o.org = s.org and o.monitor = s.monitor and o.ended_at is null limit 1) o on true
  where s.status = 'down' and o.id is null and not exists ({_GOING.format("s")})
  limit %(most)s)
union
(select o.org, o.monitor from outages o
    join monitor_states s on s.org = o.org and s.monitor = o.monitor
    join monitors m on m.org = o.org and m.id = o.monitor
  where o.ended_at is null and not exists ({_GOING.format("o")}) and (s.status = 'up'
      -- The alert of a flapping monitor stays open.
      and not (m.flap_threshold > 0 and exists (select from flap_states f
        where f.org = s.org and f.monitor = s.monitor and f.since_at is not null))
    or o.next_check_at is null and o.announced_at is null
    -- The service re-notifies of an outage that it announced.
    or o.service is null and m.renotify_seconds > 0 and (o.next_check_at is null
      or o.next_check_at > at(%(now)s) + interval '10 seconds'
        and o.next_check_at > o.notified_at + m.renotify_seconds * interval '1 second'))
  limit %(most)s)
"""


class DependencyRow(msgspec.Struct, frozen=True):
    """Monitor in a dependency graph.

    `is_called`: a composite with children that changed since its last evaluation.
    """

    org: int
    id: int
    type: str
    shard: int
    timeout_seconds: int
    is_called: bool

    @property
    def key(self) -> MonitorKey:
        return MonitorKey((self.org, self.id))

    @property
    def is_probed(self) -> bool:
        return self.type not in _NOT_PROBED


class DependencyState(msgspec.Struct, frozen=True):
    """Down monitors and all their upstreams at one instant."""

    health: MemberHealth
    kinds: Mapping[MonitorKey, DependencyRow]
    upstreams: Mapping[MonitorKey, Sequence[Upstream]]

    def is_down(self, key: MonitorKey) -> bool:
        return _status(self.health, self.kinds[key]) is MonitorStatus.DOWN


async def is_anything_due(tx: Tx, now: Instant) -> bool:
    """Returns whether a monitor, an escalation or the start of a mute is due."""
    found: bool = await tx.value(_IS_DUE, now=now)
    return found


async def select_due_subjects(
    tx: Tx, now: Instant, most: int, but: Sequence[MonitorKey] = ()
) -> list[MonitorKey]:
    """Returns monitors with a status change or a due outage, except those in `but`."""
    rows = await tx.rows(_DUE, now=now, most=most, **key_arrays(but, "monitors"))
    return [MonitorKey((org, monitor)) for org, monitor in rows]


async def select_astray_subjects(tx: Tx, now: Instant, most: int) -> list[MonitorKey]:
    """Returns monitors whose outage and state disagree, or whose reminder is late."""
    return [
        MonitorKey((org, monitor)) for org, monitor in await tx.rows(_ASTRAY, now=now, most=most)
    ]


async def select_surroundings(tx: Tx, keys: Sequence[MonitorKey], now: Instant) -> DependencyState:
    wanted: dict[MonitorKey, set[MonitorKey]] = {key: set() for key in keys}
    for org, monitor, upstream in await tx.rows(_EDGES, **key_arrays(keys, "monitors")):
        wanted[MonitorKey((org, monitor))].add(MonitorKey((org, upstream)))
    direct = set().union(*wanted.values()) if wanted else set()
    beneath = await _select_beneath(tx, direct, now)
    everybody = sorted({*keys, *direct, *(leaf for found in beneath.values() for leaf in found)})
    kinds = {
        row.key: row
        for row in await tx.structs(
            DependencyRow, _KINDS, **key_arrays(everybody, "monitors"), now=now
        )
    }
    health = await select_health(tx, everybody, now)
    upstreams = {key: _upstreams_of(found, beneath, kinds, health) for key, found in wanted.items()}
    return DependencyState(health, kinds, upstreams)


async def _select_beneath(
    tx: Tx, keys: set[MonitorKey], now: Instant
) -> dict[MonitorKey, set[MonitorKey]]:
    """Returns the children of the composites among `keys`, at any depth."""
    if not keys:
        return {}
    made = await compositions.select_beneath(tx, sorted(keys), TimeSpan(now, Instant(now + 1)))
    children = compositions.children_of(made)
    return {key: _descend(key, children) for key in keys if key in children}


def _descend(
    key: MonitorKey, children: Mapping[MonitorKey, Sequence[MonitorKey]]
) -> set[MonitorKey]:
    found: set[MonitorKey] = set()
    open_ = list(children.get(key, ()))
    while open_:
        child = open_.pop()
        if child not in found:
            found.add(child)
            open_.extend(children.get(child, ()))
    return found


def _upstreams_of(
    wanted: set[MonitorKey],
    beneath: Mapping[MonitorKey, set[MonitorKey]],
    kinds: Mapping[MonitorKey, DependencyRow],
    health: MemberHealth,
) -> list[Upstream]:
    looked_at = {leaf for key in wanted for leaf in beneath.get(key, ())} | wanted
    return [
        _upstream(kinds[key], health, counts=key in wanted)
        for key in sorted(looked_at)
        if key in kinds
    ]


def _upstream(kind: DependencyRow, health: MemberHealth, *, counts: bool) -> Upstream:
    standing = health.standings.get(kind.key)
    spans = health.maintenance.get(kind.id, ())
    in_maintenance = is_in_maintenance(health.now, spans)
    until = held_until(standing, kind.type, health.now, spans) if standing else None
    last_failed = standing is not None and standing.last_up is False and health.now < (until or 0)
    enabled = standing is not None and standing.enabled
    return Upstream(
        key=kind.key,
        counts=counts,
        failing=_status(health, kind) is MonitorStatus.DOWN or last_failed,
        in_maintenance=in_maintenance,
        probed=kind.is_probed and enabled and not in_maintenance,
        last_at=standing.last_at if standing else None,
        timeout_us=kind.timeout_seconds * SECOND,
        unsettled=enabled and not in_maintenance and kind.is_called,
    )


def _status(health: MemberHealth, kind: DependencyRow) -> MonitorStatus:
    spans = health.maintenance.get(kind.id, ())
    return status_of(health.standings.get(kind.key), kind.type, health.now, spans)
