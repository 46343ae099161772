"""Replacement of a service's upstreams, based on the graph that the caller read."""

from collections.abc import Sequence
from uuid import UUID

from ...accounts.rows import ProjectRow
from ...accounts.rules.access import Principal
from ...accounts.transactions.authorize import audit
from ...core.key import ServiceKey
from ...core.refusal import Refused
from ...engine.pools import Tx
from ..queries import service_dependencies
from ..rows import ServiceRow
from ..rules.service_dependency import UPSTREAMS_MOST, Broken, fault
from ..tables import service_dependencies as service_edges
from ..tables.services import select_service_ids, select_services
from .lock_service import demand_service, expect_unmanaged, lock_home, target_of, written

# Placeholder id of a service that is not inserted yet.
_NEW = 0


async def put_dependencies(
    tx: Tx,
    principal: Principal,
    project: UUID,
    service: UUID,
    depends_on: Sequence[UUID],
    generation: int,
) -> ServiceRow:
    """Replaces the upstreams of a service. Equal upstreams write no row.

    Args:
        generation: generation of the graph that the caller read.

    Raises:
        Refused not_found, forbidden, too_many_dependencies, dependency_not_in_project,
        dependency_cycle, dependency_depth, graph_generation_stale, managed_by_file.
    """
    home, now_at = await lock_home(tx, principal, project)
    row = await demand_service(tx, principal, project, service)
    upstreams = await check_upstreams(tx, home, row, depends_on)
    expect_unmanaged(principal, row)
    if generation != now_at:
        raise Refused("graph_generation_stale")
    edges = await service_dependencies.select_edges(tx, home.org, home.id)
    if set(edges.get(row.id, ())) == set(upstreams):
        return row
    await service_edges.put_edges(tx, row.key, upstreams)
    await service_edges.raise_generation(tx, home.org, home.id)
    await audit(tx, principal, row.org, "service.update", f"{target_of(row)} depends_on")
    return await written(tx, service)


async def check_upstreams(
    tx: Tx, home: ProjectRow, service: ServiceRow | None, depends_on: Sequence[UUID]
) -> list[int]:
    """Returns the ids of permitted upstreams. The caller has locked the graph.

    Raises:
        Refused as in `put_dependencies`.
    """
    uids = list(dict.fromkeys(depends_on))
    if len(uids) > UPSTREAMS_MOST:
        raise Refused(Broken.TOO_MANY)
    known = await select_service_ids(tx, home.org, home.id, uids)
    if len(known) < len(uids):
        raise Refused("dependency_not_in_project")
    wanted = [known[uid] for uid in uids]
    edges = await service_dependencies.select_edges(tx, home.org, home.id)
    found = fault(edges, service.id if service else _NEW, wanted)
    if found is None:
        return wanted
    if not found.path or service is None:
        raise Refused(found.broken)
    rows = await select_services(tx, [ServiceKey((home.org, key)) for key in found.path])
    slugs = " -> ".join(rows[ServiceKey((home.org, key))].slug for key in found.path)
    raise Refused(found.broken, found.broken, slugs)
