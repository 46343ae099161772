"""Changes of all services of a project, newest first, for the console."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from ...core.key import ServiceKey
from ...core.time_span import TimeSpan
from ...engine.pools import Tx
from ..rows import ChangeRow
from ..rules.change import ChangeKind
from ..tables import COLUMNS, change_row
from .change_timeline import ChangeGroup, select_groups

COUNTED_MOST: Final = 10_000

# The range of each service is at one place of an index.
_FILTER = """
c.org = s.org and c.service = s.id
    and c.latest_at >= at(%(from_at)s) and c.latest_at < at(%(until_at)s)
    and c.kind = any(%(kinds)s::text[])
    and (%(text)s = '' or strpos(lower(c.external_id), %(text)s) > 0
      or strpos(lower(c.source), %(text)s) > 0
      or exists (select from change_phases p where p.org = c.org and p.change = c.id
        and (strpos(lower(p.ref), %(text)s) > 0 or strpos(lower(p.actor_label), %(text)s) > 0)))
"""
_SERVICES = """
from services s cross join lateral
"""
_OF = """
s.org = %(org)s and s.project = %(project)s
  and (%(service)s::uuid is null or s.uid = %(service)s::uuid)
"""
_PAGE = f"""
select {COLUMNS}, s.uid, s.name {_SERVICES} (
  select * from changes c where {_FILTER}
    and (c.latest_at, c.id) < (at(%(before_at)s), %(before_id)s)
  order by c.latest_at desc, c.id desc limit %(most)s) c
where {_OF}
order by c.latest_at desc, c.id desc limit %(most)s
"""
_COUNT = f"""
select count(*) from (
  select {_SERVICES} (select from changes c where {_FILTER}) c where {_OF} limit %(most)s) counted
"""


@dataclass(frozen=True, slots=True)
class ProjectChangeFilter:
    """`service` is None for all services. `text` is part of the ref, source, id or author."""

    kinds: Collection[ChangeKind]
    service: UUID | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class ProjectChange:
    service_uid: UUID
    service_name: str
    group: ChangeGroup


async def select_project_changes(
    tx: Tx,
    org: int,
    project: int,
    within: TimeSpan,
    wanted: ProjectChangeFilter,
    before: tuple[int, int] | None,
    most: int,
) -> list[ProjectChange]:
    """Returns changes whose latest phase is in a range, newest first.

    `before` is (latest_at, id) of the last change of the previous part of the list.
    """
    at, key = min(before or (within.until, 0), (within.until, 0))
    columns = await tx.rows(
        _PAGE,
        **_parameters(org, project, within, wanted),
        before_at=at,
        before_id=key,
        most=most,
    )
    rows = [(change_row(*found[:-2]), found[-2], found[-1]) for found in columns]
    groups: dict[int, ChangeGroup] = {}
    of_service: dict[ServiceKey, list[ChangeRow]] = {}
    for row, _, _ in rows:
        of_service.setdefault(ServiceKey((row.org, row.service)), []).append(row)
    for service, changes in of_service.items():
        groups |= {one.change.id: one for one in await select_groups(tx, service, changes)}
    return [ProjectChange(uid, name, groups[row.id]) for row, uid, name in rows]


async def count_project_changes(
    tx: Tx, org: int, project: int, within: TimeSpan, wanted: ProjectChangeFilter
) -> int:
    """Returns the number of changes, `COUNTED_MOST` + 1 if there are more."""
    given = _parameters(org, project, within, wanted)
    return int(await tx.value(_COUNT, **given, most=COUNTED_MOST + 1))


def _parameters(
    org: int, project: int, within: TimeSpan, wanted: ProjectChangeFilter
) -> dict[str, object]:
    return {
        "org": org,
        "project": project,
        "from_at": within.from_,
        "until_at": within.until,
        "kinds": [kind.value for kind in wanted.kinds],
        "service": wanted.service,
        "text": wanted.text.lower(),
    }
