"""Navigation of the console: the projects that the user can open."""

from uuid import UUID

import msgspec

from ...engine.pools import Tx
from ..rules.access import Principal
from .visible_projects import sight_values

PLACES_MOST = 200

_PLACES = """
select p.uid, p.name, o.name, o.uid,
  (select count(*) from monitors m where m.org = p.org and m.project = p.id),
  (select count(*) from incidents i
   where i.org = p.org and i.project = p.id and i.status <> 'resolved'),
  (select count(*) from services s where s.org = p.org and s.project = p.id)
from projects p join organizations o on o.id = p.org
where %(everything)s or p.org = any(%(orgs)s::int[]) or p.id = any(%(projects)s::int[])
order by o.slug, p.slug limit %(most)s
"""
_PLACE = """
select p.uid, p.name, o.name, o.uid,
  (select count(*) from monitors m where m.org = p.org and m.project = p.id),
  (select count(*) from incidents i
   where i.org = p.org and i.project = p.id and i.status <> 'resolved'),
  (select count(*) from services s where s.org = p.org and s.project = p.id)
from projects p join organizations o on o.id = p.org
where p.org = %(org)s and p.id = %(project)s
"""


class NavProject(msgspec.Struct, frozen=True):
    uid: UUID
    project: str
    organization: str
    organization_uid: UUID
    monitors: int
    # Open incidents.
    incidents: int
    services: int


async def select_places(tx: Tx, principal: Principal) -> list[NavProject]:
    """Returns the visible projects by slug, at most PLACES_MOST."""
    return await tx.structs(NavProject, _PLACES, most=PLACES_MOST, **sight_values(principal))


async def select_place(tx: Tx, org: int, project: int) -> NavProject | None:
    return await tx.one(NavProject, _PLACE, org=org, project=project)
