"""Changes for the console: chart, counts and filters; the list uses `change_timeline`.

Counts and lists end at a bound that the screen shows.
"""

from collections.abc import Collection
from typing import Final
from uuid import UUID

import msgspec

from ...core.key import ServiceKey
from ...core.time_span import TimeSpan
from ...engine.pools import Tx
from ..rows import ChangeRow
from ..rules.change import ChangeKind
from ..tables import COLUMNS, change_row
from .changes import Happened, select_phases

HAPPENED_MOST: Final = 500
COUNTED_MOST: Final = 10_000
SOURCES_MOST: Final = 50

_WITHIN = """
from changes c
where c.org = %(org)s and c.service = %(service)s
  and c.latest_at >= at(%(from_at)s) and c.latest_at < at(%(until_at)s)
  and c.kind = any(%(kinds)s::text[])
  and (%(source)s::text is null or c.source = %(source)s)
"""
_NEWEST = f"select {COLUMNS} {_WITHIN} order by c.latest_at desc, c.id desc limit %(most)s"
_COUNT = f"select count(*) from (select {_WITHIN} limit %(most)s) as counted"
# A loose index scan over the sources, independent of the number of changes.
_SOURCES = """
with recursive told as (
  (select c.source from changes c where c.org = %(org)s and c.service = %(service)s
   order by c.source limit 1)
  union all
  select (select c.source from changes c
          where c.org = %(org)s and c.service = %(service)s and c.source > t.source
          order by c.source limit 1)
  from told t where t.source is not null
)
select source from told where source is not null limit %(most)s
"""
_BY_PHASE = f"""
select {COLUMNS} from change_phases p join changes c on c.org = p.org and c.id = p.change
where p.uid = %(phase)s and c.org = %(org)s and c.service = %(service)s
"""
# The newest changes of each service are at the end of an index.
_LATEST = f"""
select {COLUMNS}, s.uid, s.name from services s cross join lateral (
  select * from changes one where one.org = s.org and one.service = s.id
  order by one.latest_at desc, one.id desc limit %(most)s) c
where s.org = %(org)s and s.project = %(project)s
order by c.latest_at desc, c.id desc limit %(most)s
"""
_TITLES = """
select uid, 'INC-' || number || ', ' || title from incidents
where org = %(org)s and uid = any(%(uids)s::uuid[])
"""


async def select_happened(
    tx: Tx, service: ServiceKey, within: TimeSpan, kinds: Collection[ChangeKind], source: str | None
) -> list[Happened]:
    """Returns the newest `HAPPENED_MOST` changes whose latest phase is in a range."""
    rows = await tx.structs(
        change_row,
        _NEWEST,
        **_filter_parameters(service, within, kinds, source),
        most=HAPPENED_MOST,
    )
    phases = await select_phases(tx, service[0], [row.id for row in rows])
    return [Happened(row, phases[row.id]) for row in rows]


class LatestChange(msgspec.Struct, frozen=True):
    """Change with its service."""

    happened: Happened
    service_uid: UUID
    service_name: str


async def select_latest_of_project(tx: Tx, org: int, project: int, most: int) -> list[LatestChange]:
    """Returns the newest changes of the project's services."""
    rows = [
        (change_row(*columns[:-2]), columns[-2], columns[-1])
        for columns in await tx.rows(_LATEST, org=org, project=project, most=most)
    ]
    phases = await select_phases(tx, org, [row.id for row, _, _ in rows])
    return [LatestChange(Happened(row, phases[row.id]), uid, name) for row, uid, name in rows]


async def count_changes(
    tx: Tx, service: ServiceKey, within: TimeSpan, kinds: Collection[ChangeKind], source: str | None
) -> int:
    """Returns the number of changes, `COUNTED_MOST` + 1 if there are more."""
    given = _filter_parameters(service, within, kinds, source)
    return int(await tx.value(_COUNT, **given, most=COUNTED_MOST + 1))


async def select_sources(tx: Tx, service: ServiceKey) -> list[str]:
    """Returns the sources of a service's changes, the first `SOURCES_MOST` by name."""
    found = await tx.rows(_SOURCES, org=service[0], service=service[1], most=SOURCES_MOST)
    return [str(row[0]) for row in found]


async def select_change_of(tx: Tx, service: ServiceKey, phase: UUID) -> ChangeRow | None:
    """Returns the change of a phase."""
    return await tx.one(change_row, _BY_PHASE, org=service[0], service=service[1], phase=phase)


async def select_titles(tx: Tx, org: int, incidents: Collection[UUID]) -> dict[UUID, str]:
    """Returns the numbers and titles of incidents by uid: INC-214, Payments fail."""
    if not incidents:
        return {}
    return dict(await tx.rows(_TITLES, org=org, uids=list(incidents)))


def _filter_parameters(
    service: ServiceKey, within: TimeSpan, kinds: Collection[ChangeKind], source: str | None
) -> dict[str, object]:
    return {
        "org": service[0],
        "service": service[1],
        "from_at": within.from_,
        "until_at": within.until,
        "kinds": [kind.value for kind in kinds],
        "source": source,
    }
