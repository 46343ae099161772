"""Accounts of the installation.

The last global admin and the last org_admin of each organization cannot be removed.
"""

from uuid import UUID

from uuid_utils.compat import uuid7

from ...core.naming import email_fault, words_fault
from ...core.refusal import Refused, expect
from ...engine.pools import Tx
from ..queries.person_uses import is_person_on_call
from ..rows import INSTANCE, UserRow
from ..rules.access import Need, Permission, Principal, Role
from ..tables import users
from .authorize import NOT_FOUND, audit, demand
from .edit_members import LAST_ORG_ADMIN

EDIT = Permission(Need.GLOBAL_ADMIN)
LAST_GLOBAL_ADMIN = "last_global_admin"
OWN_ACCOUNT = "own_account"


async def create_user(
    tx: Tx,
    principal: Principal,
    email: str,
    display_name: str,
    password: str | None,
    *,
    admin: bool,
) -> UserRow:
    """Creates an account. `password` is a hash, None for an account without one.

    Raises:
        Refused forbidden, invalid, email_taken.
    """
    demand(principal, EDIT, None)
    expect("email", email_fault(email))
    expect("display_name", words_fault(display_name))
    uid = uuid7()
    if await users.insert_user(tx, uid, email, display_name, password, admin=admin) is None:
        raise Refused("email_taken")
    target = f"user:{uid} is_global_admin={admin}"
    await audit(tx, principal, INSTANCE, "user.create", target)
    return await _person(tx, uid)


async def set_global_admin(tx: Tx, principal: Principal, user: UUID, *, admin: bool) -> UserRow:
    """Grants or revokes the global admin right. An equal right is not written.

    Raises:
        Refused forbidden, not_found, last_global_admin, own_account.
    """
    demand(principal, EDIT, None)
    admins = await users.lock_global_admins(tx)
    before = await _person(tx, user)
    if not admin and admins == [before.id]:
        raise Refused(LAST_GLOBAL_ADMIN)
    _expect_another(principal, user)
    if admin == before.is_global_admin:
        return before
    await users.set_global_admin(tx, before.id, admin=admin)
    target = f"user:{user} is_global_admin={before.is_global_admin}->{admin}"
    await audit(tx, principal, INSTANCE, "user.update", target)
    return await _person(tx, user)


async def delete_user(tx: Tx, principal: Principal, user: UUID) -> None:
    """Deletes an account with its sessions and memberships. Tokens that it created remain.

    Raises:
        Refused forbidden, not_found, last_global_admin, own_account, last_org_admin, in_use if
        on-call names the person.
    """
    demand(principal, EDIT, None)
    admins = await users.lock_global_admins(tx)
    row = await _person(tx, user)
    if admins == [row.id]:
        raise Refused(LAST_GLOBAL_ADMIN)
    _expect_another(principal, user)
    for membership in await users.select_memberships(tx, row.id):
        if membership.role != Role.ORG_ADMIN:
            continue
        if await users.lock_org_admins(tx, membership.org) == [membership.id]:
            raise Refused(LAST_ORG_ADMIN)
    if await is_person_on_call(tx, row.id):
        raise Refused("in_use")
    await users.delete_user(tx, row.id)
    await audit(tx, principal, INSTANCE, "user.delete", f"user:{user}")


def _expect_another(principal: Principal, user: UUID) -> None:
    """Checks that the account is not the principal's own, against an accidental lockout.

    Another global admin can make the change.
    """
    if principal.user == user:
        raise Refused(OWN_ACCOUNT)


async def _person(tx: Tx, user: UUID) -> UserRow:
    row = await users.select_user(tx, user)
    if row is None:
        raise Refused(NOT_FOUND)
    return row
