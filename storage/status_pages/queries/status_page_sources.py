"""What a page's components are bound to by name, and what else a page may show of what is there."""

from typing import Final
from uuid import UUID

import msgspec

from ...engine.pools import Tx

# position() and not LIKE: what is searched for is text, and no pattern.
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
    """`kind` is monitor or service; `is_shown` where the page has a component of it."""

    kind: str
    uid: UUID
    name: str
    project: str
    is_shown: bool


async def select_found(
    tx: Tx, org: int, page: int, project: int | None, q: str, most: int
) -> list[BindableSource]:
    """By a part of the name; where the page is a project's, in that project."""
    given = {"org": org, "page": page, "project": project, "q": q, "most": most}
    return await tx.structs(BindableSource, _FOUND, **given)


async def select_bound_names(tx: Tx, org: int, page: int) -> dict[UUID, str]:
    """Of each component that is bound to something, what that is called."""
    return dict(await tx.rows(_BOUND, org=org, page=page))
