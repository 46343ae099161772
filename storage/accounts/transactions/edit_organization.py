"""Organizations, which are created with a first org_admin."""

from uuid import UUID

from uuid_utils.compat import uuid7

from ...core.naming import name_fault, slug_fault
from ...core.refusal import Refused, expect
from ...engine.pools import Tx
from ..queries import projects as projects_queries
from ..rows import INSTANCE, OrganizationRow
from ..rules.access import Need, Permission, Principal, Role
from ..tables import projects, users
from .authorize import audit, demand
from .authorize_tenant_write import demand_organization

CREATE = Permission(Need.GLOBAL_ADMIN)
RENAME = Permission(Need.ORG_ADMIN)


async def create_organization(
    tx: Tx, principal: Principal, slug: str, name: str
) -> OrganizationRow:
    """Creates an organization with its creator as org_admin.

    Raises:
        Refused forbidden, invalid, slug_taken, unauthorized if the account is gone.
    """
    demand(principal, CREATE, None)
    expect("slug", slug_fault(slug))
    expect("name", name_fault(name))
    uid = uuid7()
    org = await projects.insert_organization(tx, uid, slug, name)
    if org is None:
        raise Refused("slug_taken")
    assert isinstance(principal.user, UUID), "a global admin is a person"
    maker = await users.select_user(tx, principal.user)
    if maker is None:
        raise Refused("unauthorized")
    await users.insert_membership(tx, org, uuid7(), maker.id, None, Role.ORG_ADMIN)
    await audit(tx, principal, INSTANCE, "organization.create", f"organization:{uid} slug={slug}")
    row = await projects_queries.select_organization(tx, uid)
    assert row is not None, "it was just written"
    return row


async def rename_organization(
    tx: Tx, principal: Principal, organization: UUID, name: str
) -> OrganizationRow:
    """Renames an organization. An equal name is not written.

    Raises:
        Refused not_found, forbidden, invalid.
    """
    before = await demand_organization(tx, principal, RENAME, organization)
    expect("name", name_fault(name))
    if name == before.name:
        return before
    await projects.rename_organization(tx, before.id, name)
    target = f"organization:{before.uid} slug={before.slug}"
    await audit(tx, principal, before.id, "organization.update", target)
    row = await projects_queries.select_organization(tx, organization)
    assert row is not None, "it is locked"
    return row
