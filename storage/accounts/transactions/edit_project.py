"""Projects. They never move to another organization."""

from uuid import UUID

from uuid_utils.compat import uuid7

from ...core.naming import name_fault, slug_fault
from ...core.refusal import Refused, expect
from ...engine.pools import Tx
from ..queries import projects as projects_queries
from ..rows import ProjectRow
from ..rules.access import Need, Permission, Principal
from ..tables import projects
from .authorize import audit, demand_project
from .authorize_tenant_write import demand_organization, lock_project

EDIT = Permission(Need.ORG_ADMIN)


async def create_project(
    tx: Tx, principal: Principal, organization: UUID, slug: str, name: str
) -> ProjectRow:
    """Creates a project.

    Raises:
        Refused not_found, forbidden, invalid, slug_taken.
    """
    home = await demand_organization(tx, principal, EDIT, organization)
    expect("slug", slug_fault(slug))
    expect("name", name_fault(name))
    uid = uuid7()
    if await projects.insert_project(tx, home.id, uid, slug, name) is None:
        raise Refused("slug_taken")
    await audit(tx, principal, home.id, "project.create", f"project:{uid} slug={slug}")
    return await _written(tx, uid)


async def rename_project(tx: Tx, principal: Principal, project: UUID, name: str) -> ProjectRow:
    """Renames a project. An equal name is not written.

    Raises:
        Refused not_found, forbidden, invalid.
    """
    before = await demand_project(tx, principal, EDIT, project)
    expect("name", name_fault(name))
    await lock_project(tx, before)
    if name == before.name:
        return before
    await projects.rename_project(tx, before.org, before.id, name)
    target = f"project:{before.uid} slug={before.slug}"
    await audit(tx, principal, before.org, "project.update", target)
    return await _written(tx, project)


async def _written(tx: Tx, project: UUID) -> ProjectRow:
    row = await projects_queries.select_project(tx, project)
    assert row is not None, "it was just written"
    return row
