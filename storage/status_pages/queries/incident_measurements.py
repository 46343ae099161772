"""Present states of the objects of an incident: its monitor or service, and named components.

Objects of other projects are not read: their components count as not measured.
"""

from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

import msgspec

from ...core.instant import Instant
from ...core.key import MonitorKey, ServiceKey
from ...core.time_span import TimeSpan
from ...engine.pools import Tx
from ...incidents.rules.contradiction import MeasuredObject, MeasuredState, ObjectKind
from ...monitors.queries.monitors import MonitorStatusRow, select_standings, status_of
from ...monitors.rules.monitor_state import MonitorStatus
from ...scheduling.queries import shards
from ...scheduling.rules.maintenance_window import is_in_maintenance
from ...services.queries.service_health import HealthNow, select_health_now
from ...services.rules.service_health import Health, MemberState
from .incident_status_pages import IncidentSubject

_COMPONENTS: Final = """
select c.uid, c.name, c.monitor, c.service from status_components c
where c.org = %(org)s and c.uid = any(%(components)s::uuid[])
order by lower(c.name), c.id
"""
_MONITORS: Final = """
select m.id, m.uid, m.name, m.type, m.enabled from monitors m
where m.org = %(org)s and m.project = %(project)s and m.id = any(%(ids)s::int[])
order by lower(m.name), m.id
"""
_SERVICES: Final = """
select s.id, s.uid, s.name from services s
where s.org = %(org)s and s.project = %(project)s and s.id = any(%(ids)s::int[])
order by lower(s.name), s.id
"""

_UNHEALTHY: Final = frozenset({Health.DOWN, Health.DEGRADED})
_STATES: Final = {
    Health.HEALTHY: MeasuredState.UP,
    Health.DEGRADED: MeasuredState.DEGRADED,
    Health.DOWN: MeasuredState.DOWN,
    Health.UNKNOWN: MeasuredState.UNKNOWN,
    None: MeasuredState.MAINTENANCE,
}


class _Component(msgspec.Struct, frozen=True):
    uid: UUID
    name: str
    monitor: int | None
    service: int | None


class _Monitor(msgspec.Struct, frozen=True):
    id: int
    uid: UUID
    name: str
    type: str
    enabled: bool


class _Service(msgspec.Struct, frozen=True):
    id: int
    uid: UUID
    name: str


async def select_measured(tx: Tx, about: IncidentSubject) -> list[MeasuredObject]:
    """Returns services, monitors and components without a measured object, each kind by name.

    The monitors include the down members of a service that is down or degraded.
    """
    components = await tx.structs(
        _Component, _COMPONENTS, org=about.org, components=list(about.components)
    )
    named = {about.service, *(one.service for one in components)}
    services, failing = await _services(tx, about, {one for one in named if one is not None})
    named = {about.monitor, *(one.monitor for one in components), *failing}
    monitors = await _monitors(tx, about, {one for one in named if one is not None})
    loose = [
        MeasuredObject(ObjectKind.COMPONENT, one.uid, one.name, MeasuredState.UNKNOWN)
        for one in components
        if one.monitor not in monitors and one.service not in services
    ]
    return [*services.values(), *monitors.values(), *loose]


async def _services(
    tx: Tx, about: IncidentSubject, ids: set[int]
) -> tuple[dict[int, MeasuredObject], set[int]]:
    """Returns the services, and the down members of those that are down or degraded."""
    if not ids:
        return {}, set()
    rows = await tx.structs(
        _Service, _SERVICES, org=about.org, project=about.project, ids=sorted(ids)
    )
    health = await select_health_now(tx, [ServiceKey((about.org, row.id)) for row in rows])
    healths = {row.id: health[ServiceKey((about.org, row.id))] for row in rows}
    members = {one for now in healths.values() if _is_healthy(now) for one in now.members}
    standings = await select_standings(
        tx, [MonitorKey((about.org, one)) for one in sorted(members)], counted=False
    )
    failing = {
        one
        for now in healths.values()
        if now.state is not None and now.state.health in _UNHEALTHY
        for one in now.failing
    }
    found = {
        row.id: MeasuredObject(
            ObjectKind.SERVICE,
            row.uid,
            row.name,
            _state_of(healths[row.id]),
            _steady_since(about.org, healths[row.id], standings),
        )
        for row in rows
    }
    return found, failing


def _is_healthy(now: HealthNow) -> bool:
    return now.state is not None and now.state.health is Health.HEALTHY


def _state_of(now: HealthNow) -> MeasuredState:
    return MeasuredState.UNKNOWN if now.state is None else _STATES[now.state.health]


def _steady_since(
    org: int, now: HealthNow, standings: Mapping[MonitorKey, MonitorStatusRow]
) -> Instant | None:
    """Returns the last change of a known member of a healthy service, None for any other."""
    if not _is_healthy(now):
        return None
    known = [one for one, how in now.members.items() if how in (MemberState.UP, MemberState.DOWN)]
    rows = [standings.get(MonitorKey((org, one))) for one in known]
    return max((row.since for row in rows if row is not None), default=None)


async def _monitors(tx: Tx, about: IncidentSubject, ids: set[int]) -> dict[int, MeasuredObject]:
    if not ids:
        return {}
    rows = await tx.structs(
        _Monitor, _MONITORS, org=about.org, project=about.project, ids=sorted(ids)
    )
    keys = {row.id: MonitorKey((about.org, row.id)) for row in rows}
    standings = await select_standings(tx, list(keys.values()), counted=False)
    # Also maintenance that is over: it ended the freshness of earlier results.
    since = min((s.last_at for s in standings.values() if s.last_at is not None), default=tx.now)
    maintenance = await shards.select_maintenances(tx, min(since, tx.now), monitors=list(keys))
    return {
        row.id: _monitor(row, standings.get(keys[row.id]), maintenance.get(row.id, ()), tx.now)
        for row in rows
    }


def _monitor(
    row: _Monitor, standing: MonitorStatusRow | None, maintenance: Sequence[TimeSpan], now: Instant
) -> MeasuredObject:
    state, since = MeasuredState.UNKNOWN, None
    if is_in_maintenance(now, maintenance):
        state = MeasuredState.MAINTENANCE
    elif row.enabled and standing is not None:
        match status_of(standing, row.type, now, maintenance):
            case MonitorStatus.UP:
                state, since = MeasuredState.UP, standing.since
            case MonitorStatus.DOWN:
                state, since = MeasuredState.DOWN, standing.since
            case MonitorStatus.PENDING:
                pass
    return MeasuredObject(ObjectKind.MONITOR, row.uid, row.name, state, since)
