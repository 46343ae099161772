"""Services related to an incident: probable root causes, affected services and members.

All queries use the present dependency graph.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from uuid import UUID

from ...core.instant import Instant
from ...core.key import ServiceKey
from ...engine.pools import Tx
from ...services.queries import service_dependencies, service_revisions
from ...services.queries.service_health import select_health_now
from ...services.queries.service_list import select_members
from ...services.rows import ServiceRow
from ...services.rules.epoch import Revision, governed_within, governing
from ...services.rules.service_dependency import turned, ways
from ...services.rules.service_health import Health
from ...services.tables import (
    service_revisions as declarations,
)
from ...services.tables.services import select_services
from ..rows import IncidentRow

# An incident that is open now, or that overlaps the span if `over`.
_TROUBLED: Final = """
select distinct i.service from incidents i
where i.org = %(org)s and i.service = any(%(services)s::int[])
  and i.started_at <= at(%(to_at)s)
  and (i.status <> 'resolved' or (%(over)s and i.resolved_at >= at(%(from_at)s)))
"""


class ImpactRole(StrEnum):
    PROBABLE_ROOT = "probable_root"
    AFFECTED = "affected"


class IncidentPart(StrEnum):
    """Role of a monitor in a service's declaration."""

    CONTEXT = "context"
    SLI = "sli"


@dataclass(frozen=True, slots=True)
class ServiceImpact:
    """Service related to an incident.

    `path` contains slugs and begins at the incident's subject or its owning service.
    """

    service: ServiceRow
    role: ImpactRole
    path: Sequence[str]


@dataclass(frozen=True, slots=True)
class IncidentMember:
    monitor: UUID
    name: str
    parts: Sequence[IncidentPart]


async def select_impacts(tx: Tx, incident: IncidentRow) -> list[ServiceImpact]:
    """Returns probable roots and then affected services, each nearest first."""
    edges = await service_dependencies.select_edges(tx, incident.org, incident.project)
    if incident.service is not None:
        roots = await _roots(tx, incident, ways(edges, incident.service))
        reached = ways(turned(edges), incident.service)
        found = await _names_by_key(tx, incident.org, ImpactRole.PROBABLE_ROOT, roots)
        return found + await _names_by_key(tx, incident.org, ImpactRole.AFFECTED, reached)
    if incident.monitor is not None:
        return await _of_owners(tx, incident, edges)
    return []


async def select_incident_members(tx: Tx, incident: IncidentRow) -> list[IncidentMember]:
    """Returns the monitors that the service declared during the incident, by name."""
    if incident.service is None:
        return []
    key = ServiceKey((incident.org, incident.service))
    revisions = (await service_revisions.select_revisions(tx, [key]))[key]
    parts: dict[int, set[IncidentPart]] = {}
    for revision in governed_within(revisions, incident.started_at, _until(tx, incident)):
        for monitor in revision.monitors:
            part = IncidentPart.SLI if monitor in revision.sli else IncidentPart.CONTEXT
            parts.setdefault(monitor, set()).add(part)
    found = await select_members(tx, incident.org, list(parts))
    members = sorted(found.values(), key=lambda member: (member.name, member.id))
    return [IncidentMember(one.uid, one.name, sorted(parts[one.id])) for one in members]


async def _roots(
    tx: Tx, incident: IncidentRow, upstreams: Mapping[int, list[int]]
) -> dict[int, list[int]]:
    """Returns upstreams that are down or have an incident during this incident."""
    is_over = incident.resolved_at is not None
    troubled: set[int] = {
        service
        for (service,) in await tx.rows(
            _TROUBLED,
            org=incident.org,
            services=list(upstreams),
            from_at=incident.started_at,
            to_at=_until(tx, incident),
            over=is_over,
        )
    }
    if not is_over:
        health = await select_health_now(tx, [ServiceKey((incident.org, key)) for key in upstreams])
        for (_, service), now in health.items():
            if now.state is not None and now.state.health is Health.DOWN:
                troubled.add(service)
    return {service: way for service, way in upstreams.items() if service in troubled}


async def _of_owners(
    tx: Tx, incident: IncidentRow, edges: Mapping[int, Collection[int]]
) -> list[ServiceImpact]:
    """Returns the services with the monitor as a member, and their dependents."""
    assert incident.monitor is not None, "the incident has a monitor"
    monitor = incident.monitor
    member = (await select_members(tx, incident.org, [monitor])).get(monitor)
    if member is None:
        # The monitor was deleted after the incident was read.
        return []
    owners = await _owners(tx, incident.org, monitor, _until(tx, incident))
    reached: dict[int, list[int]] = {}
    for owner in owners:
        for service, way in ways(turned(edges), owner).items():
            known = reached.get(service)
            if service not in owners and (known is None or len(way) < len(known)):
                reached[service] = way
    rows = await select_services(tx, [ServiceKey((incident.org, owner)) for owner in owners])
    owning = sorted(rows.values(), key=lambda row: row.slug)
    found = [ServiceImpact(row, ImpactRole.AFFECTED, [member.slug, row.slug]) for row in owning]
    return found + await _names_by_key(tx, incident.org, ImpactRole.AFFECTED, reached)


async def _owners(tx: Tx, org: int, monitor: int, at: Instant) -> list[int]:
    declaring = await declarations.select_declaring(tx, org, [monitor])
    found = await service_revisions.select_revisions(tx, declaring)
    return [key[1] for key, revisions in found.items() if _has(governing(revisions, at), monitor)]


def _has(revision: Revision | None, monitor: int) -> bool:
    return revision is not None and monitor in revision.monitors


async def _names_by_key(
    tx: Tx, org: int, role: ImpactRole, found: Mapping[int, list[int]]
) -> list[ServiceImpact]:
    on_the_way = {key for way in found.values() for key in way}
    rows = await select_services(tx, [ServiceKey((org, key)) for key in on_the_way])
    impacts = [
        ServiceImpact(
            rows[ServiceKey((org, service))],
            role,
            [rows[ServiceKey((org, key))].slug for key in way],
        )
        for service, way in found.items()
        if all(ServiceKey((org, key)) in rows for key in (service, *way))
    ]
    return sorted(impacts, key=lambda impact: (len(impact.path), impact.path))


def _until(tx: Tx, incident: IncidentRow) -> Instant:
    return tx.now if incident.resolved_at is None else incident.resolved_at
