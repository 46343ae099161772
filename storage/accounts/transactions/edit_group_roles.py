"""Rules that give groups of the identity provider a role, set by global admins."""

from typing import Final
from uuid import UUID

from uuid_utils.compat import uuid7

from ...core.refusal import Refused, expect
from ...engine.pools import Tx
from ..queries.group_roles import select_group_roles
from ..rows import INSTANCE, GroupRoleRow
from ..rules.access import Need, Permission, Principal, Role, membership_fault
from ..rules.group_roles import RULES_MOST, rule_fault
from ..tables import group_roles
from .authorize import NOT_FOUND, audit, demand
from .authorize_tenant_write import demand_organization, project_of

EDIT: Final = Permission(Need.GLOBAL_ADMIN)


async def add_group_role(
    tx: Tx,
    principal: Principal,
    issuer: str,
    claim: str,
    value: str,
    place: tuple[UUID, UUID | None],
    role: Role,
) -> GroupRoleRow:
    """Adds a rule for the issuer. `place` is an organization, with a project or None.

    Raises:
        Refused forbidden, not_found without the organization, invalid with the field.
    """
    demand(principal, EDIT, None)
    if not issuer:
        raise Refused("invalid", "issuer", "set up single sign-on first")
    fault = rule_fault(claim, value)
    if fault is not None:
        raise Refused("invalid", *fault)
    organization, project = place
    home = await demand_organization(tx, principal, Permission(Need.ORG_ADMIN), organization)
    key = await project_of(tx, home.id, project)
    expect("", membership_fault(role, key))
    if await group_roles.count_group_roles(tx) >= RULES_MOST:
        raise Refused("invalid", "claim", f"at most {RULES_MOST} rules")
    uid = uuid7()
    inserted = await group_roles.insert_group_role(
        tx, uid, issuer, claim, value, (home.id, key), role
    )
    if not inserted:
        raise Refused("invalid", "value", "has a rule for this place: delete it first")
    where = f"organization:{organization}" + (f" project:{project}" if project else "")
    target = f"group_role:{uid} {claim}={value} {where} role={role}"
    await audit(tx, principal, INSTANCE, "group_role.create", target)
    (row,) = await select_group_roles(tx, uid)
    return row


async def remove_group_role(tx: Tx, principal: Principal, uid: UUID) -> None:
    """Deletes a rule. The memberships that it gave end at the next sign-in of each person.

    Raises:
        Refused forbidden, not_found.
    """
    demand(principal, EDIT, None)
    gone = await group_roles.delete_group_role(tx, uid)
    if gone is None:
        raise Refused(NOT_FOUND)
    claim, value, role = gone
    target = f"group_role:{uid} {claim}={value} role={role}"
    await audit(tx, principal, INSTANCE, "group_role.delete", target)
