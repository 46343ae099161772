"""Present health of services, computed from the folded states of their members.

A state counts while its result is fresh. The revision that governs now applies. Paging and the
console use this health; figures are computed from results over time instead.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...core.instant import Instant
from ...core.key import MonitorKey, ServiceKey, key_arrays
from ...core.time_span import TimeSpan
from ...engine.pools import Tx
from ...monitors.queries.monitors import MonitorStatusRow, select_standings, status_of
from ...monitors.rules.monitor_state import MonitorStatus
from ...scheduling.queries import shards
from ...scheduling.rules.maintenance_window import is_in_maintenance
from ..rules.epoch import Revision, governing
from ..rules.service_health import MemberState, ServiceHealthState, state
from . import service_revisions

_PLACES = """
select m.org, m.id, m.type, m.enabled, s.region from monitors m join shards s on s.id = m.shard
where (m.org, m.id) in (select * from unnest(%(orgs)s::int[], %(monitors)s::int[]))
"""


@dataclass(frozen=True, slots=True)
class HealthNow:
    """Present health of a service.

    `state` is None without a governing revision or SLI members. `failing` are declared monitors
    that are down, context members included; `unseen` are those without a known state.
    """

    as_of: Instant
    state: ServiceHealthState | None
    revision: int | None
    members: Mapping[int, MemberState]
    failing: Sequence[int]
    unseen: Sequence[int]


@dataclass(frozen=True, slots=True)
class _Place:
    type: str
    enabled: bool
    region: str


async def select_health_now(tx: Tx, services: Sequence[ServiceKey]) -> dict[ServiceKey, HealthNow]:
    revisions = await service_revisions.select_revisions(tx, services)
    governed_by = {key: governing(revisions[key], tx.now) for key in services}
    wanted = {
        MonitorKey((key[0], m))
        for key, r in governed_by.items()
        if r is not None
        for m in r.monitors
    }
    places = await _select_places(tx, wanted)
    standings = await select_standings(tx, sorted(places), counted=False)
    # Includes past maintenance, because it ended the validity of the results before it.
    since = min((s.last_at for s in standings.values() if s.last_at is not None), default=tx.now)
    maintenance = await shards.select_maintenances(
        tx, min(since, tx.now), monitors=[monitor for _, monitor in places]
    )
    return {
        key: _health(key, revision, places, standings, maintenance, tx.now)
        for key, revision in governed_by.items()
    }


async def _select_places(tx: Tx, keys: set[MonitorKey]) -> dict[MonitorKey, _Place]:
    rows = await tx.rows(_PLACES, **key_arrays(keys, "monitors"))
    return {MonitorKey((org, monitor)): _Place(*rest) for org, monitor, *rest in rows}


def _health(
    key: ServiceKey,
    revision: Revision | None,
    places: Mapping[MonitorKey, _Place],
    standings: Mapping[MonitorKey, MonitorStatusRow],
    maintenance: Mapping[int, Sequence[TimeSpan]],
    now: Instant,
) -> HealthNow:
    if revision is None:
        return HealthNow(now, None, None, {}, (), ())
    seen: dict[int, MemberState] = {}
    for member in revision.monitors:
        place = places.get(MonitorKey((key[0], member)))
        spans = maintenance.get(member, ())
        if place is None:
            seen[member] = MemberState.MISSING
        else:
            seen[member] = _seen(
                revision, place, standings.get(MonitorKey((key[0], member))), spans, now
            )
    sli = [(_region(places, key[0], member), seen[member]) for member in revision.sli]
    return HealthNow(
        as_of=now,
        state=state(revision.policies, sli) if sli else None,
        revision=revision.revision,
        members=seen,
        failing=[member for member, how in seen.items() if how is MemberState.DOWN],
        unseen=[member for member, how in seen.items() if how is MemberState.MISSING],
    )


def _region(places: Mapping[MonitorKey, _Place], org: int, member: int) -> str:
    place = places.get(MonitorKey((org, member)))
    return place.region if place is not None else ""


def _seen(
    revision: Revision,
    place: _Place,
    standing: MonitorStatusRow | None,
    maintenance: Sequence[TimeSpan],
    now: Instant,
) -> MemberState:
    if is_in_maintenance(now, maintenance):
        return MemberState.MAINTENANCE
    if not place.enabled:
        return MemberState.PAUSED
    policies = revision.policies
    hold = (policies.active_multiplier, policies.active_floor_us)
    match status_of(standing, place.type, now, maintenance, hold):
        case MonitorStatus.UP:
            return MemberState.UP
        case MonitorStatus.DOWN:
            return MemberState.DOWN
        case MonitorStatus.PENDING:
            return MemberState.MISSING
