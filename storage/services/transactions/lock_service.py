"""First steps of every edit of a service: lock, project check and file ownership check."""

from typing import Final
from uuid import UUID

from ...accounts.rows import ProjectRow
from ...accounts.rules.access import Need, Permission, Principal, Scope
from ...accounts.transactions.authorize import NOT_FOUND, demand, demand_project, is_managed
from ...core.refusal import Refused
from ...engine.pools import Tx
from ..rows import ServiceRow
from ..tables.service_dependencies import lock_graph
from ..tables.services import lock_service, select_service

EDIT: Final = Permission(Need.EDITOR)


async def lock_home(tx: Tx, principal: Principal, project: UUID) -> tuple[ProjectRow, int]:
    """Locks the project's graph. Returns the project and the generation.

    The lock excludes other edits of the project's services, dependencies and declarations.

    Raises:
        Refused not_found, forbidden.
    """
    home = await demand_project(tx, principal, EDIT, project)
    generation = await lock_graph(tx, home.org, home.id)
    if generation is None:
        raise Refused(NOT_FOUND)
    return home, generation


async def demand_service(tx: Tx, principal: Principal, project: UUID, service: UUID) -> ServiceRow:
    """Locks the project's service.

    Raises:
        Refused not_found, forbidden.
    """
    row = await lock_service(tx, service)
    if row is None or row.project_uid != project:
        raise Refused(NOT_FOUND)
    demand(principal, EDIT, Scope(row.org, row.project))
    return row


def expect_unmanaged(principal: Principal, row: ServiceRow) -> None:
    """Refuses an edit of a file-managed service, because the file would revert it.

    Raises:
        Refused managed_by_file.
    """
    if is_managed(principal, row.managed_by, row.orphaned_at):
        raise Refused("managed_by_file")


async def written(tx: Tx, service: UUID) -> ServiceRow:
    row = await select_service(tx, service)
    assert row is not None, "the locked or new service is missing"
    return row


def target_of(row: ServiceRow) -> str:
    """Returns the target of audit rows about a service."""
    return f"service:{row.uid} project:{row.project_uid} slug={row.slug}"
