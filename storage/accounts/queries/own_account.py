"""Reads of the principal's own user, memberships and sessions."""

from uuid import UUID

import msgspec

from ...core.instant import Instant
from ...engine.pools import Tx
from ..rows import SessionRow, UserRow
from ..rules.access import Principal
from ..tables import sessions, users

_PLACE = """
select o.uid, p.uid from organizations o
  left join projects p on p.org = o.id and p.id = %(project)s
where o.id = %(org)s
"""


class OwnMembership(msgspec.Struct, frozen=True):
    """Membership of a user or token. That of a token has no id, user or creation instant."""

    org_uid: UUID
    project_uid: UUID | None
    role: str
    uid: UUID | None = None
    user_uid: UUID | None = None
    created_at: Instant | None = None


async def select_own_user(tx: Tx, principal: Principal) -> UserRow | None:
    """Returns None for a token, whose creator is not the principal."""
    if principal.via_token or not isinstance(principal.user, UUID):
        return None
    return await users.select_user(tx, principal.user)


async def select_own_memberships(
    tx: Tx, principal: Principal, user: UserRow | None
) -> list[OwnMembership]:
    if user is not None:
        return [
            OwnMembership(m.org_uid, m.project_uid, m.role, m.uid, m.user_uid, m.created_at)
            for m in await users.select_memberships(tx, user.id)
        ]
    found = []
    for member in principal.memberships:
        row = await tx.row(_PLACE, org=member.organization, project=member.project)
        if row is not None:
            found.append(OwnMembership(row[0], row[1], member.role))
    return found


async def select_own_sessions(
    tx: Tx, principal: Principal, current: bytes
) -> tuple[list[SessionRow], UUID | None]:
    """Returns the sessions, newest first, and the id of the one with digest `current`."""
    user = await select_own_user(tx, principal)
    if user is None:
        return [], None
    mine = await sessions.select_session(tx, current)
    return await sessions.select_sessions_of(tx, user.id), mine.uid if mine else None
