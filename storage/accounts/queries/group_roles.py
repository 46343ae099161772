"""Reads of the rules that give groups of the identity provider a role."""

from typing import Final
from uuid import UUID

from ...engine.pools import Tx
from ..rows import GroupRoleRow
from ..rules.group_roles import GroupRule

_OF_ISSUER: Final = """
select claim, value, org, project, role::text from group_roles where issuer = %(issuer)s
order by id
"""
_ALL: Final = """
select g.uid, g.issuer, g.claim, g.value, o.uid, o.name, p.uid, p.name, g.role::text, g.created_at
from group_roles g join organizations o on o.id = g.org
  left join projects p on p.org = g.org and p.id = g.project
where %(uid)s::uuid is null or g.uid = %(uid)s
order by g.issuer, g.claim, g.value, o.name, p.name nulls first, g.id
"""
_ORGANIZATION_UIDS: Final = """
select id, uid from organizations where id = any(%(ids)s::int[]) order by id
"""

# A form offers at most this many; the API takes any.
PLACES_MOST: Final = 2_000
_PLACES: Final = """
select o.uid, p.uid, o.name || coalesce(', ' || p.name, '')
from organizations o left join lateral (
  select null::uuid as uid, null::text as name
  union all
  select uid, name from projects where org = o.id and deleting_since is null) p on true
where o.deleting_since is null
order by o.name, o.uid, p.name nulls first, p.uid limit %(most)s
"""


async def select_places(tx: Tx) -> list[tuple[UUID, UUID | None, str]]:
    """Returns organizations and their projects as (organization, project or None, name)."""
    return [(row[0], row[1], row[2]) for row in await tx.rows(_PLACES, most=PLACES_MOST)]


async def select_rules_of(tx: Tx, issuer: str) -> list[GroupRule]:
    return await tx.structs(GroupRule, _OF_ISSUER, issuer=issuer)


async def select_group_roles(tx: Tx, uid: UUID | None = None) -> list[GroupRoleRow]:
    """Returns all rules, or the one with the id."""
    return await tx.structs(GroupRoleRow, _ALL, uid=uid)


async def select_organization_uids(tx: Tx, ids: list[int]) -> list[tuple[int, UUID]]:
    return [(row[0], row[1]) for row in await tx.rows(_ORGANIZATION_UIDS, ids=ids)]
