"""Navigation of the console: the projects that the user can open."""

from uuid import UUID

import msgspec

from ...engine.pools import Tx
from ..rules.access import Principal
from .visible_projects import sight_values

PLACES_MOST = 200

# Without counts: every screen reads this list.
_PLACES = """
select p.uid, p.name, o.name, o.uid, p.org, p.id
from projects p join organizations o on o.id = p.org
where p.deleting_since is null and o.deleting_since is null
  and (%(everything)s or p.org = any(%(orgs)s::int[]) or p.id = any(%(projects)s::int[]))
order by o.slug, p.slug limit %(most)s
"""
_COUNTED = """
select p.uid, p.name, o.name, o.uid, p.org, p.id,
  (select count(*) from monitors m where m.org = p.org and m.project = p.id),
  (select count(*) from incidents i
   where i.org = p.org and i.project = p.id and i.status <> 'resolved'),
  (select count(*) from services s where s.org = p.org and s.project = p.id)
from projects p join organizations o on o.id = p.org
"""
_OF_ORGANIZATION = f"""
{_COUNTED}
where o.uid = %(organization)s and p.deleting_since is null and o.deleting_since is null
order by p.slug
"""
_PLACE = f"{_COUNTED} where p.org = %(org)s and p.id = %(project)s"


class SwitchProject(msgspec.Struct, frozen=True):
    """Project of the switcher."""

    uid: UUID
    project: str
    organization: str
    organization_uid: UUID
    org: int
    id: int


class NavProject(SwitchProject, frozen=True):
    """Project with the counts of its navigation."""

    monitors: int
    # Open incidents.
    incidents: int
    services: int


async def select_places(tx: Tx, principal: Principal) -> list[SwitchProject]:
    """Returns the visible projects by slug, at most PLACES_MOST."""
    return await tx.structs(SwitchProject, _PLACES, most=PLACES_MOST, **sight_values(principal))


async def select_places_of(tx: Tx, organization: UUID) -> list[NavProject]:
    """Returns all projects of an organization by slug."""
    return await tx.structs(NavProject, _OF_ORGANIZATION, organization=organization)


async def select_place(tx: Tx, org: int, project: int) -> NavProject | None:
    return await tx.one(NavProject, _PLACE, org=org, project=project)
