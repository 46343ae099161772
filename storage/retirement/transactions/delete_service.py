"""Deletion of a service with its declarations, sealed time and dependencies."""

from uuid import UUID

from ...accounts.rules.access import Principal
from ...accounts.transactions.authorize import audit
from ...core.key import ServiceKey
from ...engine.pools import Tx
from ...services.queries import service_dependencies
from ...services.rules.service_dependency import turned
from ...services.tables import service_dependencies as service_edges
from ...services.tables import services
from ...services.transactions.lock_service import (
    demand_service,
    expect_unmanaged,
    lock_home,
    target_of,
)
from .end_episode_of_deleted import end_with_service


async def delete_service(tx: Tx, principal: Principal, project: UUID, service: UUID) -> None:
    """Deletes a service.

    Raises:
        Refused not_found, forbidden; managed_by_file also if a file-managed service depends on it.
    """
    home, _ = await lock_home(tx, principal, project)
    row = await demand_service(tx, principal, project, service)
    expect_unmanaged(principal, row)
    edges = await service_dependencies.select_edges(tx, home.org, home.id)
    dependants = turned(edges).get(row.id, [])
    found = await services.select_services(tx, [ServiceKey((home.org, key)) for key in dependants])
    for one in found.values():
        expect_unmanaged(principal, one)
    await end_with_service(tx, row)
    await services.delete_service(tx, row.key)
    await service_edges.raise_generation(tx, home.org, home.id)
    await audit(tx, principal, row.org, "service.delete", target_of(row))
