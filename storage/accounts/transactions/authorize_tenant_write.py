"""Authorization and locks at the start of writes to an organization or project."""

from uuid import UUID

from ...core.refusal import Refused
from ...engine.pools import Tx
from ..queries import projects as projects_queries
from ..rows import OrganizationRow, ProjectRow
from ..rules.access import Permission, Principal, Scope
from ..tables import tenant_deletion as removals
from ..tables.projects import lock_shared_project_of
from .authorize import NOT_FOUND, demand


async def demand_organization(
    tx: Tx, principal: Principal, action: Permission, organization: UUID
) -> OrganizationRow:
    """Returns the organization, locked until the commit, if the principal has the permission.

    Raises:
        Refused not_found, forbidden.
    """
    if not await removals.lock_shared_organization(tx, organization):
        raise Refused(NOT_FOUND)
    row = await projects_queries.select_organization(tx, organization)
    assert row is not None, "it is locked"
    demand(principal, action, Scope(row.id))
    return row


async def demand_held_project(
    tx: Tx, principal: Principal, action: Permission, project: UUID
) -> ProjectRow:
    """Returns the project, locked until the commit against deletion, in one statement.

    Raises:
        Refused not_found, forbidden.
    """
    row = await lock_shared_project_of(tx, project)
    if row is None:
        raise Refused(NOT_FOUND)
    demand(principal, action, Scope(row.org, row.id))
    return row


async def project_of(tx: Tx, org: int, project: UUID | None) -> int | None:
    """Returns the key of a project named in a body, None for None.

    Raises:
        Refused invalid if it is not in the organization.
    """
    if project is None:
        return None
    row = await projects_queries.select_project(tx, project)
    if row is None or row.org != org:
        raise Refused("invalid", "project_id", "is not a project of this organization")
    return row.id


async def lock_project_of(tx: Tx, org: int, project: UUID | None) -> int | None:
    """Returns the key as `project_of`, locked until the commit against deletion.

    Raises:
        Refused invalid if it is not in the organization.
    """
    key = await project_of(tx, org, project)
    if key is not None and not await removals.lock_shared_project(tx, org, key):
        # The project was deleted after the lookup.
        return await project_of(tx, org, project)
    return key


async def lock_project(tx: Tx, project: ProjectRow) -> None:
    """Locks a project, so that quota counts and deletions are serialized.

    Raises:
        Refused not_found if it is deleted.
    """
    if not await removals.lock_project(tx, project.org, project.id):
        raise Refused(NOT_FOUND)
