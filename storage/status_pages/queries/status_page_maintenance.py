"""Current and announced maintenance of a status page's components."""

from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from ...core.instant import DAY
from ...core.key import ServiceKey
from ...engine.pools import Tx
from ...services.queries.service_revisions import select_revisions
from ...services.rules.epoch import governing
from ..rules.status_page import Maintenance
from .status_page_components import BoundComponent

AHEAD_US: Final = 30 * DAY
MAINTENANCE_MOST: Final = 50

_COMING: Final = """
select x.uid, p.uid, m.uid, x.monitor, x.project, x.starts_at,
  least(x.ends_at, x.cancel_effective_at), coalesce(x.public_title, x.reason), x.created_at
from maintenances x join projects p on p.org = x.org and p.id = x.project
  left join monitors m on m.org = x.org and m.id = x.monitor
where x.org = %(org)s and x.archived_at is null
  and least(x.ends_at, x.cancel_effective_at) > at(%(now)s) and x.starts_at < at(%(until)s)
  and (x.monitor = any(%(monitors)s::int[])
    or x.monitor is null and x.project = any(%(projects)s::int[]))
  -- Maintenance of a deleted monitor would appear as maintenance of the whole project.
  and (x.monitor is null or m.id is not null)
order by x.starts_at, x.id limit %(most)s
"""
_PROJECTS: Final = """
select id, project from {table} where org = %(org)s and id = any(%(ids)s::int[])
"""


async def select_page_maintenance(
    tx: Tx, org: int, bindings: Sequence[BoundComponent]
) -> list[Maintenance]:
    """Returns maintenance that is not over and begins within AHEAD_US, by start.

    Each has the affected components.
    """
    members = await _members(tx, org, bindings)
    projects = await _projects(tx, org, bindings)
    rows = await tx.rows(
        _COMING,
        org=org,
        monitors=sorted({monitor for found in members.values() for monitor in found}),
        projects=sorted(set(projects.values())),
        now=tx.now,
        until=tx.now + AHEAD_US,
        most=MAINTENANCE_MOST,
    )
    return [_read(row, members, projects) for row in rows]


async def affected_components(
    tx: Tx,
    org: int,
    bindings: Sequence[BoundComponent],
    places: Sequence[tuple[int | None, int]],
) -> list[tuple[UUID, ...]]:
    """Returns the components that maintenance of each (monitor or None, project) affects now."""
    members = await _members(tx, org, bindings)
    projects = await _projects(tx, org, bindings)
    return [_about(monitor, project, members, projects) for monitor, project in places]


def _read(
    row: Sequence[Any], members: Mapping[UUID, set[int]], projects: Mapping[UUID, int]
) -> Maintenance:
    uid, project_uid, monitor_uid, monitor, project, starts_at, over_at, reason, created_at = row
    return Maintenance(
        uid=uid,
        project=project_uid,
        monitor=monitor_uid,
        starts_at=starts_at,
        over_at=over_at,
        reason=reason,
        created_at=created_at,
        components=_about(monitor, project, members, projects),
    )


def _about(
    monitor: int | None,
    project: int,
    members: Mapping[UUID, set[int]],
    projects: Mapping[UUID, int],
) -> tuple[UUID, ...]:
    if monitor is None:
        return tuple(uid for uid, of in projects.items() if of == project)
    return tuple(uid for uid, found in members.items() if monitor in found)


async def _members(tx: Tx, org: int, bindings: Sequence[BoundComponent]) -> dict[UUID, set[int]]:
    """Returns the monitors that currently determine each component."""
    found = {b.uid: {b.monitor} for b in bindings if b.monitor is not None}
    services = {ServiceKey((org, b.service)) for b in bindings if b.service is not None}
    revisions = await select_revisions(tx, services)
    for binding in bindings:
        if binding.service is not None:
            governs = governing(revisions[ServiceKey((org, binding.service))], tx.now)
            found[binding.uid] = set(governs.sli) if governs is not None else set()
    return found


async def _projects(tx: Tx, org: int, bindings: Sequence[BoundComponent]) -> dict[UUID, int]:
    """Returns the project of each component's monitor or service."""
    monitors = await _projects_of(tx, "monitors", org, [b.monitor for b in bindings])
    services = await _projects_of(tx, "services", org, [b.service for b in bindings])
    places = {
        b.uid: services.get(b.service) if b.monitor is None else monitors.get(b.monitor)
        for b in bindings
        if b.monitor is not None or b.service is not None
    }
    return {uid: place for uid, place in places.items() if place is not None}


async def _projects_of(
    tx: Tx, table: str, org: int, ids: Sequence[int | None]
) -> dict[int | None, int]:
    query = _PROJECTS.replace("{table}", table)
    return dict(await tx.rows(query, org=org, ids=[key for key in ids if key is not None]))
