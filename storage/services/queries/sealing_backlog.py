"""Services with unsealed time, or with a past that is not reconstructed yet."""

import msgspec

from ...core.instant import MINUTE, Instant
from ...core.key import ServiceKey
from ...engine.pools import Tx
from ...scheduling.rules.run_schedule import LATE_ARRIVAL_US

# `least` is the gap before the fence in which results can still arrive: no member is sealed there.
_BEHIND = """
select s.org, s.id, s.sealed_through, f.fence
from (select max(settled_through) as fence from shards) f
  join services s on s.sealed_through <= f.fence - make_interval(secs => %(least)s)
order by s.org, s.id
"""
_TO_RECONSTRUCT = """
select org, id from services
where backfill_from < materialization_start and sealed_through > materialization_start
order by materialization_start - backfill_from, org, id limit %(most)s
"""
# Retention must keep the results of unsealed time and of a past that is not reconstructed yet, if
# the service has members.
_LEAST_OPEN = """
select min(least(s.sealed_through,
  case when s.backfill_from < s.materialization_start then s.backfill_from end)) from services s
where s.sealed_through is not null and exists (
  select from service_revisions r where r.org = s.org and r.service = s.id
    and r.governs_from <= s.sealed_through and r.sli <> '{}'
    and not exists (select from service_revisions l where l.org = r.org and l.service = r.service
      and l.governs_from <= s.sealed_through and l.revision > r.revision))
"""


class UnsealedService(msgspec.Struct, frozen=True):
    """Service with unsealed time. `fence` is the latest of all regions."""

    org: int
    service: int
    sealed_through: Instant
    fence: Instant

    @property
    def key(self) -> ServiceKey:
        return ServiceKey((self.org, self.service))


async def select_behind(tx: Tx) -> list[UnsealedService]:
    least = (LATE_ARRIVAL_US + MINUTE) // 1_000_000
    return await tx.structs(UnsealedService, _BEHIND, least=least)


async def select_to_reconstruct(tx: Tx, most: int) -> list[ServiceKey]:
    """Returns services to reconstruct, shortest range first."""
    rows = await tx.rows(_TO_RECONSTRUCT, most=most)
    return [ServiceKey((org, service)) for org, service in rows]


async def select_least_open(tx: Tx) -> Instant | None:
    """Returns the instant before which no service needs results, None if none needs any."""
    found: Instant | None = await tx.value(_LEAST_OPEN)
    return found
