"""Visible organizations and projects. A member of a project sees its organization."""

from typing import Any
from uuid import UUID

from ...engine.pools import Tx
from ..rows import OrganizationRow, ProjectRow
from ..rules.access import Principal, sight

_ORGANIZATIONS = """
select o.id, o.uid, o.slug, o.name, o.created_at, o.updated_at from organizations o
where (%(everything)s or o.id = any(%(orgs)s::int[])) and o.deleting_since is null
order by o.slug
"""
_PROJECTS = """
select p.org, p.id, p.uid, o.uid, p.slug, p.name, p.created_at, p.updated_at
from projects p join organizations o on o.id = p.org
where p.org = %(org)s and p.deleting_since is null
  and (%(everything)s or p.org = any(%(orgs)s::int[])
  or p.id = any(%(projects)s::int[]))
order by p.slug
"""
_NAMED_SERVICE = """
select p.uid, s.uid from projects p
  join organizations o on o.id = p.org
  join services s on s.org = p.org and s.project = p.id
where %(project)s in (p.slug, p.uid::text) and %(service)s in (s.slug, s.uid::text)
  and p.deleting_since is null and o.deleting_since is null
  and (%(everything)s or p.org = any(%(orgs)s::int[]) or p.id = any(%(projects)s::int[]))
limit 2
"""


async def find_named_service(
    tx: Tx, principal: Principal, project: str, service: str
) -> tuple[UUID, UUID] | None:
    """Returns the ids of a project and its service, each named by its slug or its id.

    Returns None if no service that the principal sees has these names, or several have.
    """
    values = sight_values(principal)
    rows = await tx.rows(_NAMED_SERVICE, project=project, service=service, **values)
    return (rows[0][0], rows[0][1]) if len(rows) == 1 else None


async def select_visible_organizations(tx: Tx, principal: Principal) -> list[OrganizationRow]:
    seen = sight(principal)
    return await tx.structs(
        OrganizationRow,
        _ORGANIZATIONS,
        everything=seen.everything,
        orgs=list(seen.visible_organizations),
    )


async def select_visible_projects(tx: Tx, principal: Principal, org: int) -> list[ProjectRow]:
    return await tx.structs(ProjectRow, _PROJECTS, org=org, **sight_values(principal))


def sight_values(principal: Principal) -> dict[str, Any]:
    """Returns the visible scopes as the parameters `everything`, `orgs` and `projects`."""
    seen = sight(principal)
    return {
        "everything": seen.everything,
        "orgs": list(seen.organizations),
        "projects": list(seen.projects),
    }
