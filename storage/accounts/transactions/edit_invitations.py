"""Invitations of members by e-mail. The answer is the same for known and unknown addresses.

A membership begins when the owner of the address accepts. The link of an e-mail is created when
the e-mail is sent; without a mail server the inviter gets the link.
"""

import os
from uuid import UUID

from uuid_utils.compat import uuid7

from ...core.naming import email_fault, words_fault
from ...core.refusal import Refused, expect
from ...core.token import RANDOM_BYTES, TokenKind, digest, kind_of, token_from
from ...engine.pools import Tx
from ..queries import users as users_queries
from ..queries.principals import SessionPrincipal
from ..rows import INSTANCE, InvitationRow, UserRow
from ..rules.access import (
    CredentialKind,
    Principal,
    Role,
    Scope,
    membership_fault,
)
from ..rules.invitation import last_mail_at, resend_wait
from ..tables import invitations, users
from .authorize import NOT_FOUND, audit, demand
from .authorize_tenant_write import demand_organization, project_of
from .edit_members import EDIT

RESENT_TOO_SOON = "rate_limited"
ANOTHER_ADDRESS = "is for another address"


def new_link() -> str:
    """Returns the secret of a link."""
    return token_from(TokenKind.INVITATION, os.urandom(RANDOM_BYTES))


async def invite(
    tx: Tx,
    principal: Principal,
    organization: UUID,
    email: str,
    project: UUID | None,
    role: Role,
    token_hash: bytes | None,
    display_name: str = "",
) -> InvitationRow:
    """Invites an address. Without `token_hash` an e-mail with the link is due.

    `display_name` is the name that the page of the invitation suggests.

    Raises:
        Refused not_found, forbidden, invalid.
    """
    home = await demand_organization(tx, principal, EDIT, organization)
    expect("email", email_fault(email))
    key = await project_of(tx, home.id, project)
    expect("", membership_fault(role, key))
    inviter = principal.user if isinstance(principal.user, UUID) else None
    uid = await invitations.put_invitation(
        tx, home.id, uuid7(), key, email, role, inviter, token_hash, display_name
    )
    place = f" project:{project}" if project else ""
    await audit(tx, principal, home.id, "invitation.create", f"invitation:{uid}{place} role={role}")
    return await _found(tx, uid)


async def resend(
    tx: Tx, principal: Principal, invitation: UUID, token_hash: bytes | None
) -> InvitationRow:
    """Extends an invitation. Without `token_hash` a new e-mail is due, at most once a minute.

    Raises:
        Refused not_found, forbidden, rate_limited.
    """
    row = await _found(tx, invitation)
    demand(principal, EDIT, Scope(row.org))
    last = last_mail_at(row.mail_due_at, row.mailed_at, row.attempts, row.expires_at)
    if token_hash is None and last is not None and resend_wait(last, tx.now):
        raise Refused(RESENT_TOO_SOON)
    await invitations.renew(tx, row.org, row.id, token_hash)
    await audit(tx, principal, row.org, "invitation.resend", f"invitation:{row.uid}")
    return await _found(tx, invitation)


async def withdraw(tx: Tx, principal: Principal, invitation: UUID) -> None:
    """Deletes an invitation. Its link is invalid from the commit on.

    Raises:
        Refused not_found, forbidden.
    """
    row = await _found(tx, invitation)
    demand(principal, EDIT, Scope(row.org))
    await invitations.delete_invitation(tx, row.org, row.id)
    await audit(tx, principal, row.org, "invitation.delete", f"invitation:{row.uid}")


async def begin_mail(tx: Tx, invitation: UUID) -> tuple[InvitationRow, str] | None:
    """Returns an invitation with the secret of its new link.

    Returns None if it is no longer open or no e-mail is due.
    """
    row = await invitations.lock_invitation(tx, invitation)
    if row is None or row.expires_at <= tx.now or row.mail_due_at is None:
        return None
    token = new_link()
    await invitations.set_token(tx, invitation, digest(token))
    return row, token


async def accept_as_user(tx: Tx, signed_in: SessionPrincipal, token: str) -> InvitationRow:
    """Makes the signed-in user a member. The account must have the invited address.

    Raises:
        Refused not_found, invalid.
    """
    row = await _locked(tx, token)
    if signed_in.user.email.lower() != row.email.lower():
        raise Refused("invalid", "invitation", ANOTHER_ADDRESS)
    await _join(tx, signed_in.principal, signed_in.user, row)
    return row


async def accept_as_new(tx: Tx, token: str, display_name: str, password: str) -> InvitationRow:
    """Creates the account of the invited address and its membership. `password` is a hash.

    Raises:
        Refused not_found, invalid, email_taken.
    """
    row = await _locked(tx, token)
    expect("display_name", words_fault(display_name))
    uid = uuid7()
    if await users.insert_user(tx, uid, row.email, display_name, password, admin=False) is None:
        raise Refused("email_taken")
    user = await users.select_user(tx, uid)
    assert user is not None, "it was just written"
    by = Principal(CredentialKind.SESSION, user=uid, label=display_name or row.email, uid=uid)
    await audit(tx, by, INSTANCE, "user.create", f"user:{uid} by_invitation=true")
    await _join(tx, by, user, row)
    return row


async def is_member(tx: Tx, org: int, email: str) -> bool:
    """Returns whether the verified address belongs to a member of the organization."""
    user = await users_queries.select_user_by_email(tx, email)
    found = [] if user is None else await users.select_memberships(tx, user.id)
    return any(one.org == org for one in found)


async def _join(tx: Tx, by: Principal, user: UserRow, row: InvitationRow) -> None:
    uid = uuid7()
    made = await users.insert_membership(tx, row.org, uid, user.id, row.project, row.role)
    place = f" project:{row.project_uid}" if row.project_uid else ""
    if made is not None:
        target = f"membership:{uid} user:{user.uid}{place} role={row.role}"
        await audit(tx, by, row.org, "invitation.accept", target)
    else:
        await _take_over(tx, by, user, row)
    await invitations.delete_invitation(tx, row.org, row.id)


async def _take_over(tx: Tx, by: Principal, user: UserRow, row: InvitationRow) -> None:
    """Gives a membership of groups the invited role, so that the groups no longer change it.

    The last org_admin keeps the role.
    """
    held = await users.select_memberships(tx, user.id)
    for one in held:
        if (one.org, one.project) != (row.org, row.project) or one.group_issuer is None:
            continue
        admins = await users.lock_org_admins(tx, row.org)
        before = await users.lock_membership(tx, row.org, one.uid)
        if before is None or before.group_issuer is None:
            return
        role = Role.ORG_ADMIN if admins == [before.id] else Role(row.role)
        await users.set_role(tx, row.org, before.id, role)
        await users.take_from_groups(tx, row.org, before.id)
        place = f" project:{row.project_uid}" if row.project_uid else ""
        change = f"role={before.role}->{role}"
        target = f"membership:{before.uid} user:{user.uid}{place} {change}"
        await audit(tx, by, row.org, "invitation.accept", target)


async def _locked(tx: Tx, token: str) -> InvitationRow:
    row = None
    if kind_of(token) is TokenKind.INVITATION:
        row = await invitations.lock_by_token(tx, digest(token))
    if row is None:
        raise Refused(NOT_FOUND)
    return row


async def _found(tx: Tx, uid: UUID) -> InvitationRow:
    row = await invitations.lock_invitation(tx, uid)
    if row is None or row.expires_at <= tx.now:
        raise Refused(NOT_FOUND)
    return row
