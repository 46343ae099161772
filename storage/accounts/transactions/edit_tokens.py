"""API tokens: created by users for an organization or project, and never changed."""

from collections.abc import Sequence
from uuid import UUID

from uuid_utils.compat import uuid7

from ...core.naming import name_fault
from ...core.refusal import Refused, expect
from ...engine.pools import Tx
from ..rows import TokenRow
from ..rules.access import Need, Permission, Principal, Role, Scope, actions_fault, membership_fault
from ..tables import api_tokens as tokens
from .authorize import NOT_FOUND, audit, demand
from .authorize_tenant_write import demand_organization, project_of

CREATE = Permission(Need.ORG_ADMIN, tokenless=True)
DELETE = Permission(Need.ORG_ADMIN)


async def create_token(
    tx: Tx,
    principal: Principal,
    organization: UUID,
    name: str,
    role: Role,
    project: UUID | None,
    actions: Sequence[str] | None,
    token_hash: bytes,
) -> TokenRow:
    """Creates a token.

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
    uid = uuid7()
    maker = principal.user if isinstance(principal.user, UUID) else None
    await tokens.insert_token(
        tx, home.id, uid, key, name, role, _once_each(actions), token_hash, maker
    )
    await audit(tx, principal, home.id, "token.create", _target(uid, project, role))
    row = await tokens.select_token(tx, uid)
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


def _target(token: UUID, project: UUID | None, role: Role) -> str:
    place = f" project:{project}" if project else ""
    return f"token:{token}{place} role={role}"
