"""Users of the installation with their memberships."""

from collections.abc import Sequence
from uuid import UUID

import msgspec

from ...engine.pools import Tx
from ..rows import MembershipRow, UserRow
from ..tables import users
from ..tables.users import _COLUMNS, _MEMBER_COLUMNS, _MEMBER_FROM

# Sufficient for a listing. A more specific search finds the others.
MOST = 1_000

_MEMBERSHIPS = """
select m.user_id, o.uid, o.name, p.uid, p.name, m.role::text
from memberships m join organizations o on o.id = m.org
  left join projects p on p.org = m.org and p.id = m.project
where m.user_id = any(%(users)s::int[])
order by o.name, p.name nulls first
"""


class NamedMembership(msgspec.Struct, frozen=True):
    user_id: int
    org_uid: UUID
    org_name: str
    project_uid: UUID | None
    project_name: str | None
    role: str


class UserWithRoles(msgspec.Struct, frozen=True):
    user: UserRow
    memberships: list[NamedMembership]


async def search_people(tx: Tx, q: str) -> list[UserWithRoles]:
    """Returns users with `q` in their e-mail address or name, ignoring case.

    Empty matches all.
    """
    return await with_memberships(tx, await users.search_users(tx, q, MOST))


async def with_memberships(tx: Tx, rows: Sequence[UserRow]) -> list[UserWithRoles]:
    found = await tx.structs(NamedMembership, _MEMBERSHIPS, users=[row.id for row in rows])
    of_user: dict[int, list[NamedMembership]] = {}
    for membership in found:
        of_user.setdefault(membership.user_id, []).append(membership)
    return [UserWithRoles(row, of_user.get(row.id, [])) for row in rows]


# Unverified addresses are not used for lookups.
_BY_EMAIL = f"""
select {_COLUMNS} from users u
where lower(u.email) = lower(%(email)s) and u.email_verified and u.email <> ''
"""

_MEMBERS_OF_ORG = f"""
select {_MEMBER_COLUMNS}, u.password is not null,
  exists (select from user_identities i where i.user_id = u.id), u.totp_enabled_at is not null
{_MEMBER_FROM} where m.org = %(org)s order by lower(u.email), m.id
"""


async def select_user_by_email(tx: Tx, email: str) -> UserRow | None:
    return await tx.one(UserRow, _BY_EMAIL, email=email)


class MemberRow(MembershipRow, frozen=True):
    """Membership with the ways in which its user can sign in."""

    has_password: bool
    has_identity: bool
    has_factor: bool


async def select_members(tx: Tx, org: int) -> list[MemberRow]:
    return await tx.structs(MemberRow, _MEMBERS_OF_ORG, org=org)
