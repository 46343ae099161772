"""Search in monitors, projects and incidents that the principal can see."""

from uuid import UUID

import msgspec

from ...accounts.queries.visible_projects import sight_values
from ...accounts.rules.access import Principal
from ...engine.pools import Tx

MOST_OF_A_KIND = 20

# position() instead of LIKE: the search text is not a pattern.
_MONITORS = """
select 'monitor', m.uid, o.uid, p.uid, m.name, p.name
from monitors m join projects p on p.org = m.org and p.id = m.project
  join organizations o on o.id = m.org
where (%(everything)s or m.org = any(%(orgs)s::int[]) or m.project = any(%(projects)s::int[]))
  and (position(lower(%(q)s) in lower(m.name)) > 0 or position(lower(%(q)s) in m.slug) > 0
    or position(lower(%(q)s) in lower(m.target)) > 0)
order by position(lower(%(q)s) in lower(m.name)) = 0, lower(m.name), m.org, m.id
limit %(most)s
"""
_PROJECTS = """
select 'project', p.uid, o.uid, p.uid, p.name, o.name
from projects p join organizations o on o.id = p.org
where (%(everything)s or p.org = any(%(orgs)s::int[]) or p.id = any(%(projects)s::int[]))
  and (position(lower(%(q)s) in lower(p.name)) > 0 or position(lower(%(q)s) in p.slug) > 0)
order by lower(p.name), p.org, p.id
limit %(most)s
"""
_INCIDENTS = """
select 'incident', i.uid, o.uid, p.uid, i.title, p.name
from incidents i join projects p on p.org = i.org and p.id = i.project
  join organizations o on o.id = i.org
where (%(everything)s or i.org = any(%(orgs)s::int[]) or i.project = any(%(projects)s::int[]))
  and position(lower(%(q)s) in lower(i.title)) > 0
order by i.status = 'resolved', i.id desc
limit %(most)s
"""


class Hit(msgspec.Struct, frozen=True):
    """Search result. `sub` names its project, or the organization of a project."""

    type: str
    uid: UUID
    org_uid: UUID
    project_uid: UUID
    label: str
    sub: str


async def search(tx: Tx, principal: Principal, q: str) -> list[Hit]:
    given = {**sight_values(principal), "q": q, "most": MOST_OF_A_KIND}
    monitors = await tx.structs(Hit, _MONITORS, **given)
    found = await tx.structs(Hit, _PROJECTS, **given)
    return monitors + found + await tx.structs(Hit, _INCIDENTS, **given)
