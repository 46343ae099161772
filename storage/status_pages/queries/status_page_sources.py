"""Names of bound monitors and services, and search for further ones."""

from typing import Final
from uuid import UUID

import msgspec

from ...engine.pools import Tx

# position() instead of LIKE: the search text is not a pattern.
_FOUND: Final = """
select x.kind, x.uid, x.name, p.name, x.shown from (
  select 'monitor' as kind, m.uid, m.name, m.org, m.project, exists (
      select from status_components c
      where c.org = m.org and c.page = %(page)s and c.monitor = m.id) as shown
  from monitors m where m.org = %(org)s
  union all
  select 'service', s.uid, s.name, s.org, s.project, exists (
      select from status_components c
      where c.org = s.org and c.page = %(page)s and c.service = s.id)
  from services s where s.org = %(org)s
) x join projects p on p.org = x.org and p.id = x.project
where (%(project)s::int is null or x.project = %(project)s::int)
  and position(lower(%(q)s) in lower(x.name)) > 0
order by lower(x.name), x.kind desc, x.uid limit %(most)s
"""
_BOUND: Final = """
select c.uid, coalesce(m.name, s.name) from status_components c
  left join monitors m on m.org = c.org and m.id = c.monitor
  left join services s on s.org = c.org and s.id = c.service
where c.org = %(org)s and c.page = %(page)s and (m.id is not null or s.id is not null)
"""


class BindableSource(msgspec.Struct, frozen=True):
    """Monitor or service that a component can be bound to.

    `is_shown` states that the page already has a component of it.
    """

    kind: str
    uid: UUID
    name: str
    project: str
    is_shown: bool


async def select_found(
    tx: Tx, org: int, page: int, project: int | None, q: str, most: int
) -> list[BindableSource]:
    """Returns sources with `q` in their name; for a page of a project, those of the project."""
    given = {"org": org, "page": page, "project": project, "q": q, "most": most}
    return await tx.structs(BindableSource, _FOUND, **given)


async def select_bound_names(tx: Tx, org: int, page: int) -> dict[UUID, str]:
    """Returns the name of the monitor or service of each bound component."""
    return dict(await tx.rows(_BOUND, org=org, page=page))
