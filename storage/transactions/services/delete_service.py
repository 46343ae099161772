"""A service goes, with what was declared and sealed of it. Who depended on it no longer does."""

from uuid import UUID

from ...pools import Tx
from ...rules.access import Principal
from ...rules.dependency import turned
from ...tables import service_edges, services
from ..alerts.end_with_service import end_with_service
from ..authority import audit
from .grounds import expect_unmanaged, hold_home, hold_service, target_of


async def delete_service(tx: Tx, principal: Principal, project: UUID, service: UUID) -> None:
    """Refused not_found, forbidden, managed_by_file: also where a file says that another depends on
    it."""
    home, _ = await hold_home(tx, principal, project)
    row = await hold_service(tx, principal, project, service)
    expect_unmanaged(principal, row)
    edges = await service_edges.select_edges(tx, home.org, home.id)
    dependants = turned(edges).get(row.id, [])
    found = await services.select_services(tx, [(home.org, key) for key in dependants])
    for one in found.values():
        expect_unmanaged(principal, one)
    await end_with_service(tx, row)
    await services.delete_service(tx, row.key)
    await service_edges.raise_generation(tx, home.org, home.id)
    await audit(tx, principal, row.org, "service.delete", target_of(row))
