"""Services of a project with their newest declaration."""

from collections.abc import Sequence
from uuid import UUID

import msgspec

from ...core.instant import Instant
from ...core.key import ServiceKey
from ...engine.pools import Tx

# Reads only the newest row per service by its key, independent of the number of revisions.
_DECLARED = """
select s.org, s.id, coalesce(r.revision, 0), r.effective_at, coalesce(cardinality(r.monitors), 0),
  coalesce(cardinality(r.sli), 0), coalesce(e.seq, 0)
from services s
  left join lateral (select v.revision, v.effective_at, v.monitors, v.sli from service_revisions v
    where v.org = s.org and v.service = s.id order by v.revision desc limit 1) r on true
  left join lateral (select v.seq from service_epochs v
    where v.org = s.org and v.service = s.id order by v.effective_at desc limit 1) e on true
where s.org = %(org)s and s.project = %(project)s
"""
_MEMBERS = """
select m.id, m.uid, m.name, m.slug from monitors m
where m.org = %(org)s and m.id = any(%(ids)s::int[])
"""


# The current day is not complete, so that only its hours are stored.
_DAYS = """
select service, start, sum(good_us + bad_us)::bigint, sum(bad_us)::bigint,
  sum(excluded_us)::bigint
from (
  select service, start, good_us, bad_us, excluded_us from service_days
  where org = %(org)s and service = any(%(ids)s::int[]) and start >= at(%(from_at)s)
    and start < at(%(today)s)
  union all
  select service, at(%(today)s), good_us, bad_us, excluded_us from service_hours
  where org = %(org)s and service = any(%(ids)s::int[]) and start >= at(%(today)s)
) as found group by service, start
"""


class ServiceDay(msgspec.Struct, frozen=True):
    """Measured time and time down of a service within a day in UTC, in microseconds."""

    service: int
    start: Instant
    measured_us: int
    bad_us: int
    excluded_us: int


class DeclaredService(msgspec.Struct, frozen=True):
    """Newest declaration of a service. `revision` and `epoch` are 0 before the first."""

    org: int
    service: int
    revision: int
    effective_at: Instant | None
    monitors: int
    sli: int
    epoch: int


class ServiceMember(msgspec.Struct, frozen=True):
    id: int
    uid: UUID
    name: str
    slug: str


async def select_declared(tx: Tx, org: int, project: int) -> dict[ServiceKey, DeclaredService]:
    rows = await tx.structs(DeclaredService, _DECLARED, org=org, project=project)
    return {ServiceKey((row.org, row.service)): row for row in rows}


async def select_service_days(
    tx: Tx, org: int, ids: Sequence[int], from_at: Instant, today: Instant
) -> dict[int, dict[Instant, ServiceDay]]:
    """Returns the recorded days from `from_at` to `today` of each service, by their start."""
    found: dict[int, dict[Instant, ServiceDay]] = {}
    given = {"org": org, "ids": list(ids), "from_at": from_at, "today": today}
    for day in await tx.structs(ServiceDay, _DAYS, **given):
        found.setdefault(day.service, {})[day.start] = day
    return found


async def select_members(tx: Tx, org: int, keys: Sequence[int]) -> dict[int, ServiceMember]:
    """Returns the existing monitors among `keys`."""
    rows = await tx.structs(ServiceMember, _MEMBERS, org=org, ids=list(keys))
    return {row.id: row for row in rows}
