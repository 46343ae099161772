"""Evaluation of services: opens, pages, reminds and ends alert episodes.

Invariant: the decision follows from the members' known states under the lock of the alerting row.
A successful evaluation renews the lease by which the members delegate paging; a failed one does
not.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from ...core.instant import Instant
from ...core.key import ServiceKey
from ...engine.pools import Tx
from ...incidents.rows import IncidentRow
from ...incidents.rules.incident import IncidentImpact
from ...incidents.tables import incidents
from ...mutes.queries import mutes_of_services
from ...notifications.queries.global_silence import global_silence_in_force
from ...notifications.queries.ticket_destinations import select_ticket_destinations
from ...services.queries.service_health import HealthNow, select_health_now
from ...services.queries.service_revisions import select_revisions
from ...services.rules.epoch import Revision, governs
from ...services.rules.service_health import MemberState as MemberSeen
from ...services.rules.support_hours import opens_at
from ...services.tables.services import select_services
from ..queries.member_outages import MemberOutage, select_member_outages
from ..queries.paging_owners import alerting_policy_of, select_latches
from ..queries.paging_routes import select_reach
from ..rows import AlertingRow
from ..rules.alert_episode import (
    EVERY_US,
    AlertingPolicy,
    Episode,
    EpisodeAction,
    EpisodeContext,
    EpisodeDecision,
    ServiceCondition,
    decide,
    is_explained,
)
from ..rules.paging_delegation import EpisodeLatch, RouteState
from ..tables import service_alerting
from ..tables import service_episodes as episodes
from ..tables.service_alerting import EvaluationRow
from ..tables.service_episodes import EpisodeRow
from .notify_episode import (
    DELETED_BODY,
    RECOVERED_BODY,
    EvaluatedService,
    announce_episode,
    end_episode,
    open_episode,
    raise_impact,
    remind,
    take_over,
)

# Time for which an unprocessed outage can still get a cause of its own.
UNLOOKED_US = EVERY_US


@dataclass(slots=True)
class ServiceEvaluations:
    """Counts of one pass: `acts` by action, `withheld` by the reason not to page."""

    services: int = 0
    acts: Counter[EpisodeAction] = field(default_factory=Counter)
    withheld: Counter[str] = field(default_factory=Counter)

    @property
    def told(self) -> int:
        return sum(count for act, count in self.acts.items() if act is not EpisodeAction.NOTHING)


@dataclass(frozen=True, slots=True)
class _Sight:
    """Input of the decisions about the evaluated services."""

    health: Mapping[ServiceKey, HealthNow]
    revisions: Mapping[ServiceKey, Revision | None]
    members: Mapping[ServiceKey, Sequence[MemberOutage]]
    open_: Mapping[ServiceKey, EpisodeRow]
    latches: Mapping[ServiceKey, EpisodeLatch]
    reach: Mapping[ServiceKey, RouteState]
    muted: Collection[ServiceKey]
    # Services whose pages of low urgency wait.
    closed: Collection[ServiceKey]


async def evaluate_services(tx: Tx, keys: Sequence[ServiceKey]) -> ServiceEvaluations:
    """Evaluates due services of one organization, except those that are locked."""
    done = ServiceEvaluations()
    held = await service_alerting.lock_alertings(tx, keys, skip_locked=True)
    # Another process may have evaluated it just before; two evaluations at the same instant must
    # not count as confirmation.
    alertings = {key: row for key, row in held.items() if row.due_at <= tx.now}
    if not alertings:
        return done
    sight = await _look(tx, sorted(alertings))
    services = await select_services(tx, sorted(alertings))
    opened = await _lock_incidents(tx, sorted(alertings), sight.open_)
    seen: list[EvaluationRow] = []
    # By project, as the number of a new incident locks the counter of its project.
    for key in sorted(alertings, key=lambda one: (services[one].project, one)):
        alerting = alertings[key]
        live, step = _decide(key, alerting, sight, opened.get(key), tx.now)
        spoken = EvaluatedService(
            service=services[key],
            live=live,
            step=step,
            members=sight.members.get(key, ()),
            episode=sight.open_.get(key),
            incident=opened.get(key),
            end_body=_end_body(sight.revisions[key]),
        )
        heard = _is_heard(sight.latches.get(key))
        await _follow(tx, spoken, heard=heard, owns=alerting.owns_paging)
        done.acts[step.act] += 1
        if step.quiet is not None:
            done.withheld[step.quiet.value] += 1
        seen.append(_seen(alerting, sight.revisions[key], live, step))
    await service_alerting.write_seen(tx, seen, Instant(tx.now + EVERY_US))
    done.services = len(seen)
    return done


async def end_forgotten_episodes(tx: Tx, keys: Sequence[ServiceKey]) -> int:
    """Ends open episodes of services whose lease expired. Returns their number.

    An episode ends if the service is known to be well or has no members. Channels that were
    notified get the recovery.
    """
    alertings = await service_alerting.lock_alertings(tx, keys, skip_locked=True)
    stale = sorted(key for key, row in alertings.items() if not row.live_lease_holds)
    if not stale:
        return 0
    open_ = await episodes.select_open_episodes(tx, stale)
    sight = await _look(tx, stale)
    well = [key for key in sorted(open_) if _is_over(key, alertings[key], sight)]
    held = await _lock_incidents(tx, well, open_)
    for key in well:
        await end_episode(tx, open_[key], held.get(key), _end_body(sight.revisions[key]))
    return len(well)


def _is_over(key: ServiceKey, alerting: AlertingRow, sight: _Sight) -> bool:
    revision = sight.revisions[key]
    is_well = alerting_policy_of(alerting).is_well(_live(sight.health[key]))
    return is_well or (revision is not None and not revision.sli)


def _end_body(revision: Revision | None) -> str:
    """Returns the closing text. A service without members is not known to have recovered."""
    return DELETED_BODY if revision is not None and not revision.sli else RECOVERED_BODY


async def _look(tx: Tx, keys: Sequence[ServiceKey]) -> _Sight:
    found = await select_revisions(tx, keys)
    revisions = {key: governs(found[key], tx.now)[1] for key in keys}
    members = {key: r.sli for key, r in revisions.items() if r is not None}
    return _Sight(
        health=await select_health_now(tx, keys),
        revisions=revisions,
        members=await select_member_outages(tx, members, tx.now),
        open_=await episodes.select_open_episodes(tx, keys),
        latches=await select_latches(tx, keys),
        reach=await select_reach(tx, keys, tx.now),
        muted=await _muted(tx, keys),
        closed=await _closed(tx, keys),
    )


async def _muted(tx: Tx, keys: Sequence[ServiceKey]) -> Collection[ServiceKey]:
    """Returns the services that a mute or the global silence covers."""
    if await global_silence_in_force(tx) is not None:
        return keys
    return (await mutes_of_services(tx, keys)).keys()


async def _closed(tx: Tx, keys: Sequence[ServiceKey]) -> Collection[ServiceKey]:
    """Returns the services outside their support hours that page without an escalation.

    Where a ticket destination receives the page, or a policy can wait, the episode goes on.
    """
    found = set()
    for key, row in (await select_services(tx, keys)).items():
        if row.escalation_policy is None and opens_at(row.support_zone, row.support_hours, tx.now):
            impact = IncidentImpact.MINOR
            if not await select_ticket_destinations(tx, row.org, row.project, impact):
                found.add(key)
    return found


async def _lock_incidents(
    tx: Tx, keys: Sequence[ServiceKey], open_: Mapping[ServiceKey, EpisodeRow]
) -> dict[ServiceKey, IncidentRow]:
    """Locks all incidents before any notification, in ascending lock order."""
    named = {
        key: incident
        for key in keys
        if key in open_ and (incident := open_[key].incident) is not None
    }
    return await incidents.lock_of_episodes(tx, named, [key for key in keys if key not in open_])


def _decide(
    key: ServiceKey,
    alerting: AlertingRow,
    sight: _Sight,
    incident: IncidentRow | None,
    now: Instant,
) -> tuple[ServiceCondition, EpisodeDecision]:
    speaking = alerting_policy_of(alerting)
    live = _live(sight.health[key])
    row, revision = sight.open_.get(key), sight.revisions[key]
    around = EpisodeContext(
        explained=_is_explained(key, speaking, sight, now),
        spoken_for=_is_spoken_for(key, sight),
        reaches=sight.reach[key] is RouteState.SOMEBODY,
        of_nothing=revision is not None and not revision.sli,
        silenced=key in sight.muted,
        closed=key in sight.closed and live is ServiceCondition.DEGRADED,
    )
    # An evaluation under other settings does not count as confirmation.
    streak = alerting.live_streak if alerting.live_generation == alerting.generation else 0
    return live, decide(speaking, live, streak, _episode(row, incident, now), around, now)


def _live(health: HealthNow) -> ServiceCondition:
    if health.state is None:
        return ServiceCondition.UNKNOWN
    return (
        ServiceCondition.EXCLUDED
        if health.state.health is None
        else ServiceCondition(health.state.health.value)
    )


def _episode(row: EpisodeRow | None, incident: IncidentRow | None, now: Instant) -> Episode | None:
    if row is None:
        return None
    taken_up = incident is not None and (
        incident.is_acknowledged or incident.is_snoozed(now) or incident.resolved_at is not None
    )
    return Episode(row.announced_at is not None, row.notified_at, taken_up)


def _is_spoken_for(key: ServiceKey, sight: _Sight) -> bool:
    """Returns whether the page of a member that is still down covers the problem."""
    seen = sight.health[key].members
    return any(
        member.stands and seen.get(member.monitor) is MemberSeen.DOWN
        for member in sight.members.get(key, ())
    )


def _is_explained(key: ServiceKey, speaking: AlertingPolicy, sight: _Sight, now: Instant) -> bool:
    revision = sight.revisions[key]
    if revision is None:
        return False
    seen = sight.health[key].members
    return is_explained(
        revision.policies,
        speaking,
        (
            (m.region, seen.get(m.monitor, MemberSeen.MISSING), m.is_silent(now, UNLOOKED_US))
            for m in sight.members.get(key, ())
        ),
    )


async def _follow(tx: Tx, spoken: EvaluatedService, *, heard: bool, owns: bool) -> None:
    episode, incident = spoken.episode, spoken.incident
    if episode is not None and heard:
        await episodes.mark_page_delivered(tx, episode)
    if episode is not None and incident is not None and incident.resolved_at is None:
        incident = await raise_impact(tx, spoken, incident)
    match spoken.step.act:
        case EpisodeAction.OPEN:
            await announce_episode(tx, spoken, *await open_episode(tx, spoken))
        case EpisodeAction.ADOPT:
            await open_episode(tx, spoken)
        case EpisodeAction.ANNOUNCE if episode is not None and incident is not None:
            await announce_episode(tx, spoken, episode, incident)
        case EpisodeAction.REMIND if episode is not None and incident is not None:
            await remind(tx, spoken, episode, incident)
        case EpisodeAction.END if episode is not None:
            await end_episode(tx, episode, incident, spoken.end_body)
        case EpisodeAction.NOTHING if episode is not None and incident is not None:
            if owns and episode.announced_at is not None and heard:
                # The delivered page covers outages that began later.
                await take_over(tx, spoken, incident.id)


def _is_heard(latch: EpisodeLatch | None) -> bool:
    return latch is not None and latch.announced and latch.heard


def _seen(
    alerting: AlertingRow, revision: Revision | None, live: ServiceCondition, step: EpisodeDecision
) -> EvaluationRow:
    return EvaluationRow(
        org=alerting.org,
        service=alerting.service,
        generation=alerting.generation,
        revision=None if revision is None else revision.revision,
        state=live.value,
        streak=step.streak,
        reason=None if step.quiet is None else step.quiet.value,
    )
