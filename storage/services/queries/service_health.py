"""Present health of services, computed from the folded states of their members.

A state counts while its result is fresh. The revision that governs now applies. Paging and the
console use this health; figures are computed from results over time instead.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ...core.instant import Instant
from ...core.key import MonitorKey, ServiceKey, key_arrays
from ...core.time_span import TimeSpan
from ...engine.pools import Tx
from ...monitors.queries.monitors import MonitorStatusRow, held_until, select_standings
from ...monitors.rules.monitor_state import MonitorStatus, status_at
from ...scheduling.queries import shards
from ...scheduling.rules.maintenance_window import is_in_maintenance
from ..rules.epoch import Revision, governing
from ..rules.service_health import MemberState, ServiceHealthState, state
from . import service_revisions

_PLACES = """
select m.org, m.id, m.type, m.enabled, s.region,
  (select min(t.from_at) from monitor_terms t where t.org = m.org and t.monitor = m.id)
from monitors m join shards s on s.id = m.shard
where (m.org, m.id) in (select * from unnest(%(orgs)s::int[], %(monitors)s::int[]))
"""

_STATES = {
    MonitorStatus.UP: MemberState.UP,
    MonitorStatus.DOWN: MemberState.DOWN,
    MonitorStatus.PENDING: MemberState.MISSING,
}
_WITHOUT_STATE = frozenset({MemberState.MISSING, MemberState.NOT_BEGUN})


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
    # First instant at which the end of a freshness, or the start of a term or of a declaration, can
    # change it, None without one. Starts and ends of maintenance are not included.
    until: Instant | None = None


@dataclass(frozen=True, slots=True)
class KnownMonitor:
    """Monitor and its status that a transaction has read."""

    type: str
    enabled: bool
    region: str
    standing: MonitorStatusRow


NOT_READ: Final[Mapping[MonitorKey, KnownMonitor]] = {}


@dataclass(frozen=True, slots=True)
class _Place:
    type: str
    enabled: bool
    region: str
    # Start of a schedule term, None without one: of the first one, or of another that has begun.
    begun: Instant | None


async def select_health_now(
    tx: Tx,
    services: Sequence[ServiceKey],
    known: Mapping[MonitorKey, KnownMonitor] = NOT_READ,
    revisions: Mapping[ServiceKey, Sequence[Revision]] | None = None,
) -> dict[ServiceKey, HealthNow]:
    """Returns the health of each service.

    `known` and `revisions` are monitors and the services' revisions that this transaction has read.
    """
    if revisions is None:
        revisions = await service_revisions.select_revisions(tx, services)
    governed_by = {key: governing(revisions[key], tx.now) for key in services}
    wanted = {
        MonitorKey((key[0], m))
        for key, r in governed_by.items()
        if r is not None
        for m in r.monitors
    }
    places, standings = await _select_members(tx, wanted, known)
    # Includes past maintenance, because it ended the validity of the results before it.
    since = min((s.last_at for s in standings.values() if s.last_at is not None), default=tx.now)
    maintenance = await shards.select_maintenances(
        tx, min(since, tx.now), monitors=[monitor for _, monitor in places]
    )
    found = {
        key: _health(key, revision, places, standings, maintenance, tx.now)
        for key, revision in governed_by.items()
    }
    for key in services:
        declared = revisions[key]
        # A declaration governs from the next minute.
        if later := [r.governs_from for r in declared if r.governs_from > tx.now]:
            ends = [*later, *([until] if (until := found[key].until) is not None else [])]
            found[key] = replace(found[key], until=min(ends))
    return found


async def _select_members(
    tx: Tx, wanted: set[MonitorKey], known: Mapping[MonitorKey, KnownMonitor]
) -> tuple[dict[MonitorKey, _Place], dict[MonitorKey, MonitorStatusRow]]:
    """Returns the monitors and their statuses, and reads those that are not known."""
    places: dict[MonitorKey, _Place] = {}
    standings: dict[MonitorKey, MonitorStatusRow] = {}
    for key in wanted & known.keys():
        one = known[key]
        # The start of a later term is after that of the first one, whose start is read then.
        if one.standing.term_from <= tx.now:
            places[key] = _Place(one.type, one.enabled, one.region, one.standing.term_from)
            standings[key] = one.standing
    if unread := wanted - places.keys():
        read = await _select_places(tx, unread)
        standings |= await select_standings(tx, sorted(read), counted=False)
        places |= read
    return places, standings


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
    ends: list[Instant] = []
    for member in revision.monitors:
        place = places.get(MonitorKey((key[0], member)))
        spans = maintenance.get(member, ())
        if place is None:
            seen[member] = MemberState.MISSING
        else:
            seen[member], until = _seen(
                revision, place, standings.get(MonitorKey((key[0], member))), spans, now
            )
            if until is not None:
                ends.append(until)
    sli = [(_region(places, key[0], member), seen[member]) for member in revision.sli]
    return HealthNow(
        as_of=now,
        state=state(revision.policies, sli) if sli else None,
        revision=revision.revision,
        members=seen,
        failing=[member for member, how in seen.items() if how is MemberState.DOWN],
        unseen=[member for member, how in seen.items() if how in _WITHOUT_STATE],
        until=min(ends, default=None),
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
) -> tuple[MemberState, Instant | None]:
    """Returns the state, and when it ends if only time passes."""
    if is_in_maintenance(now, maintenance):
        return MemberState.MAINTENANCE, None
    if place.begun is not None and now < place.begun:
        return MemberState.NOT_BEGUN, place.begun
    if not place.enabled:
        return MemberState.PAUSED, None
    if standing is None:
        return MemberState.MISSING, None
    policies = revision.policies
    hold = (policies.active_multiplier, policies.active_floor_us)
    until = held_until(standing, place.type, now, maintenance, hold)
    return _STATES[status_at(MonitorStatus(standing.status), until, now)], until
