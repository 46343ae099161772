"""API tokens: created by users for an organization or project.

Rights never change after the creation; name and end do. A rotation creates a successor with the
same rights and lifetime, and sets the end of the old token.
"""

from collections.abc import Sequence
from uuid import UUID

from msgspec import UNSET, UnsetType
from uuid_utils.compat import uuid7

from ...core.instant import DAY, SECOND, Instant, to_text
from ...core.naming import name_fault
from ...core.refusal import Refused, expect
from ...engine.pools import Tx
from ..rows import TokenRow
from ..rules.access import Need, Permission, Principal, Role, Scope, actions_fault, membership_fault
from ..rules.token_expiry import expiry_fault, successor_expiry
from ..tables import api_tokens as tokens
from .authorize import NOT_FOUND, audit, demand
from .authorize_tenant_write import demand_organization, project_of

CREATE = Permission(Need.ORG_ADMIN, tokenless=True)
DELETE = Permission(Need.ORG_ADMIN)
OVERLAP_MOST_SECONDS = 7 * DAY // SECOND


async def create_token(
    tx: Tx,
    principal: Principal,
    organization: UUID,
    name: str,
    role: Role,
    project: UUID | None,
    actions: Sequence[str] | None,
    token_hash: bytes,
    start: str,
    expires_at: Instant | None = None,
) -> TokenRow:
    """Creates a token. `start` is the beginning of its secret, shown in lists.

    The token is refused from `expires_at` on, None for a token without an end.

    Raises:
        Refused not_found, forbidden, invalid, action_unknown, action_not_granted.
    """
    home = await demand_organization(tx, principal, CREATE, organization)
    expect("name", name_fault(name))
    key = await project_of(tx, home.id, project)
    expect("", membership_fault(role, key))
    fault = actions_fault(None if actions is None else list(actions), role)
    if fault is not None:
        raise Refused(fault)
    expect("expires_at", expiry_fault(expires_at, tx.now))
    uid = uuid7()
    maker = principal.user if isinstance(principal.user, UUID) else None
    await tokens.insert_token(
        tx, home.id, uid, key, name, role, _once_each(actions), token_hash, maker, start, expires_at
    )
    target = _target(uid, project, role)
    target = target if expires_at is None else f"{target} {_end(expires_at)}"
    await audit(tx, principal, home.id, "token.create", target)
    row = await tokens.select_token(tx, uid)
    assert row is not None, "it was just written"
    return row


async def rotate_token(
    tx: Tx,
    principal: Principal,
    token: UUID,
    overlap_seconds: int,
    token_hash: bytes,
    start: str,
) -> TokenRow:
    """Creates a successor with the same name, rights and lifetime. The old token ends after the
    overlap.

    An end that the old token already has is never postponed. Without an overlap it is deleted.

    Raises:
        Refused not_found, forbidden, invalid.
    """
    before = await tokens.lock_token(tx, token)
    if before is None:
        raise Refused(NOT_FOUND)
    demand(principal, CREATE, Scope(before.org))
    if not 0 <= overlap_seconds <= OVERLAP_MOST_SECONDS:
        raise Refused("invalid", "overlap_seconds", f"must be between 0 and {OVERLAP_MOST_SECONDS}")
    uid = uuid7()
    maker = principal.user if isinstance(principal.user, UUID) else None
    await tokens.insert_token(
        tx,
        before.org,
        uid,
        before.project,
        before.name,
        before.role,
        before.actions,
        token_hash,
        maker,
        start,
        successor_expiry(before.created_at, before.chosen_expiry, tx.now),
    )
    if overlap_seconds:
        end = Instant(tx.now + overlap_seconds * SECOND)
        end = end if before.expires_at is None else min(end, before.expires_at)
        await tokens.expire_rotated(tx, before.org, before.id, end)
    else:
        await tokens.delete_token(tx, before.org, before.id)
    target = f"token:{before.uid} successor:{uid} overlap={overlap_seconds}s"
    await audit(tx, principal, before.org, "token.rotate", target)
    row = await tokens.select_token(tx, uid)
    assert row is not None, "it was just written"
    return row


async def update_token(
    tx: Tx,
    principal: Principal,
    token: UUID,
    name: str | None = None,
    expires_at: Instant | UnsetType | None = UNSET,
) -> TokenRow:
    """Changes the name, the end, or both. `expires_at` None removes the end.

    The end of a rotated token cannot be changed, as a rotation promises it.

    Raises:
        Refused not_found, forbidden, invalid, token_rotated.
    """
    before = await tokens.lock_token(tx, token)
    if before is None:
        raise Refused(NOT_FOUND)
    demand(principal, CREATE, Scope(before.org))
    expect("name", None if name is None else name_fault(name))
    named = before.name if name is None else name
    ends, chosen = before.expires_at, before.chosen_expiry
    if not isinstance(expires_at, UnsetType) and expires_at != before.expires_at:
        if before.is_rotated:
            raise Refused("token_rotated")
        expect("expires_at", expiry_fault(expires_at, tx.now))
        ends = chosen = expires_at
    changes = ["name"] * (named != before.name) + [_end(ends)] * (ends != before.expires_at)
    if not changes:
        return before
    await tokens.update_token(
        tx, before.org, before.id, name=named, expires_at=ends, chosen_expiry=chosen
    )
    target = " ".join([_target(before.uid, before.project_uid, Role(before.role)), *changes])
    await audit(tx, principal, before.org, "token.update", target)
    row = await tokens.select_token(tx, token)
    assert row is not None, "it was just written"
    return row


async def delete_token(tx: Tx, principal: Principal, token: UUID) -> None:
    """Deletes a token, which is invalid from the commit on.

    Raises:
        Refused not_found, forbidden.
    """
    row = await tokens.select_token(tx, token)
    if row is None:
        raise Refused(NOT_FOUND)
    demand(principal, DELETE, Scope(row.org))
    await tokens.delete_token(tx, row.org, row.id)
    target = _target(row.uid, row.project_uid, Role(row.role))
    await audit(tx, principal, row.org, "token.delete", target)


def _once_each(actions: Sequence[str] | None) -> list[str] | None:
    return None if actions is None else list(dict.fromkeys(actions))


def _end(expires_at: Instant | None) -> str:
    return f"expires_at={'never' if expires_at is None else to_text(expires_at)}"


def _target(token: UUID, project: UUID | None, role: Role) -> str:
    place = f" project:{project}" if project else ""
    return f"token:{token}{place} role={role}"
