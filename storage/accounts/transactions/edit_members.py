"""Members of an organization. The last org_admin cannot be removed."""

from uuid import UUID

from uuid_utils.compat import uuid7

from ...core.refusal import Refused, expect
from ...engine.pools import Tx
from ..queries import users as users_queries
from ..queries.person_uses import is_person_on_call
from ..rows import MembershipRow, UserRow
from ..rules.access import Need, Permission, Principal, Role, membership_fault
from ..tables import users
from .authorize import NOT_FOUND, audit
from .authorize_tenant_write import demand_organization, project_of

EDIT = Permission(Need.ORG_ADMIN)
LAST_ORG_ADMIN = "last_org_admin"
NO_SUCH_PERSON = "is no member of this organization: invite the person by e-mail"


async def add_member(
    tx: Tx,
    principal: Principal,
    organization: UUID,
    user: UUID | None,
    email: str | None,
    project: UUID | None,
    role: Role,
) -> MembershipRow:
    """Adds a member by `user` or `email`.

    Only a global admin can add a user who is not yet in the organization; others invite.

    Raises:
        Refused not_found, forbidden, invalid, member_exists.
    """
    home = await demand_organization(tx, principal, EDIT, organization)
    person = await _person(tx, user, email)
    if not principal.is_everywhere_org_admin:
        memberships = await users.select_memberships(tx, person.id)
        if all(one.org != home.id for one in memberships):
            field = "email" if user is None else "user_id"
            raise Refused("invalid", field, NO_SUCH_PERSON)
    key = await project_of(tx, home.id, project)
    _expect_fit(role, key)
    uid = uuid7()
    if await users.insert_membership(tx, home.id, uid, person.id, key, role) is None:
        raise Refused("member_exists")
    place = f" project:{project}" if project else ""
    target = f"membership:{uid} user:{person.uid}{place} role={role}"
    await audit(tx, principal, home.id, "member.create", target)
    return await _locked(tx, home.id, uid)


async def update_member(
    tx: Tx, principal: Principal, organization: UUID, membership: UUID, role: Role
) -> MembershipRow:
    """Changes the role of a member. An equal role that a person gave is not written.

    The groups of an identity provider no longer change a role that a person changed or confirmed.

    Raises:
        Refused not_found, forbidden, invalid, last_org_admin.
    """
    home = await demand_organization(tx, principal, EDIT, organization)
    # Locked before the membership: concurrent removals wait here, which prevents a deadlock.
    admins = await users.lock_org_admins(tx, home.id)
    before = await _locked(tx, home.id, membership)
    _expect_fit(role, before.project)
    if role is not Role.ORG_ADMIN and admins == [before.id]:
        raise Refused(LAST_ORG_ADMIN)
    if role == before.role and before.group_issuer is None:
        return before
    await users.set_role(tx, home.id, before.id, role)
    await users.take_from_groups(tx, home.id, before.id)
    target = f"membership:{before.uid} user:{before.user_uid} role={before.role}->{role}"
    await audit(tx, principal, home.id, "member.update", target)
    return await _locked(tx, home.id, membership)


async def remove_member(tx: Tx, principal: Principal, organization: UUID, membership: UUID) -> None:
    """Removes a member.

    Raises:
        Refused not_found, forbidden, last_org_admin, in_use if on-call names the person in a
        project that no other membership covers.
    """
    home = await demand_organization(tx, principal, EDIT, organization)
    admins = await users.lock_org_admins(tx, home.id)
    before = await _locked(tx, home.id, membership)
    if admins == [before.id]:
        raise Refused(LAST_ORG_ADMIN)
    if await is_person_on_call(tx, before.user_id, home.id, before.id):
        raise Refused("in_use")
    await users.delete_membership(tx, before)
    target = f"membership:{before.uid} user:{before.user_uid} role={before.role}"
    await audit(tx, principal, home.id, "member.delete", target)


async def _person(tx: Tx, user: UUID | None, email: str | None) -> UserRow:
    if (user is None) == (email is None):
        raise Refused("invalid", "user_id", "give one of user_id and email")
    if user is not None:
        row, field = await users.select_user(tx, user), "user_id"
    else:
        assert email is not None, "one of them is given"
        row, field = await users_queries.select_user_by_email(tx, email), "email"
    if row is None:
        raise Refused("invalid", field, NO_SUCH_PERSON)
    return row


async def _locked(tx: Tx, org: int, membership: UUID) -> MembershipRow:
    row = await users.lock_membership(tx, org, membership)
    if row is None:
        raise Refused(NOT_FOUND)
    return row


def _expect_fit(role: Role, project: int | None) -> None:
    expect("", membership_fault(role, project))
