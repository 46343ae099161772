"""Reads of service revisions."""

from collections.abc import Iterable
from uuid import UUID

from ...core.instant import Instant
from ...core.key import ServiceKey, key_arrays
from ...engine.pools import Tx
from ..rows import EpochRow, RevisionAuthor
from ..rules.epoch import Revision
from ..rules.service_health import AggregationMode, MissingData, Policies, RegionMode
from ..tables import service_revisions as service_revisions_table

_SELECT = """
select r.org, r.service, r.revision, r.uid, r.effective_at, r.governs_from, r.monitors, r.sli,
  r.mode, r.healthy_min, r.degraded_min, r.region_mode, r.healthy_min_regions,
  r.degraded_min_regions, r.missing_data, r.active_multiplier, r.active_floor_us
from service_revisions r
"""

_OF_SERVICES = f"""
{_SELECT} join unnest(%(orgs)s::int[], %(services)s::int[]) as k(org, service)
  on k.org = r.org and k.service = r.service
order by r.org, r.service, r.revision
"""

_NOTED = """
select r.revision, r.created_at, u.uid, r.created_by_label
from service_revisions r left join users u on u.id = r.created_by
where r.org = %(org)s and r.service = %(service)s order by r.revision
"""


async def select_revisions(
    tx: Tx, services: Iterable[ServiceKey]
) -> dict[ServiceKey, list[Revision]]:
    """Returns all revisions of each service by ascending number."""
    keys = list(services)
    rows = await tx.rows(_OF_SERVICES, **key_arrays(keys, "services"))
    found: dict[ServiceKey, list[Revision]] = {key: [] for key in keys}
    for org, service, *rest in rows:
        found[ServiceKey((org, service))].append(_revision(*rest))
    return found


async def select_noted(tx: Tx, key: ServiceKey) -> list[RevisionAuthor]:
    return await tx.structs(RevisionAuthor, _NOTED, org=key[0], service=key[1])


def _revision(
    revision: int,
    uid: UUID,
    effective_at: Instant,
    governs_from: Instant,
    monitors: list[int],
    sli: list[int],
    mode: str,
    healthy_min: int,
    degraded_min: int,
    region_mode: str,
    healthy_min_regions: int,
    degraded_min_regions: int,
    missing_data: str,
    active_multiplier: int,
    active_floor_us: int,
) -> Revision:
    policies = Policies(
        mode=AggregationMode(mode),
        healthy_min=healthy_min,
        degraded_min=degraded_min,
        region_mode=RegionMode(region_mode),
        healthy_min_regions=healthy_min_regions,
        degraded_min_regions=degraded_min_regions,
        missing_data=MissingData(missing_data),
        active_multiplier=active_multiplier,
        active_floor_us=active_floor_us,
    )
    return Revision(
        revision=revision,
        uid=uid,
        effective_at=effective_at,
        governs_from=governs_from,
        monitors=tuple(monitors),
        sli=tuple(sli),
        policies=policies,
    )


async def select_epochs(tx: Tx, services: Iterable[ServiceKey]) -> dict[ServiceKey, list[EpochRow]]:
    """Returns the stored epochs in the order of their start.

    Numbers need not ascend: a late edit gets a higher number than an epoch that starts after it.
    """
    return await service_revisions_table.select_epochs(tx, services)
