"""Notifications of a service's episode: opening, reminder and end, with one incident.

The caller locks the alerting row and the incident of the open episode. The page adopts the
unannounced outages of the members, so that no member pages for them. The end of the episode
releases outages that last; they are processed as unannounced.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import structs

from ...accounts.tables.projects import select_project_name
from ...core.instant import Instant
from ...engine.pools import Tx
from ...incidents.rows import IncidentRow
from ...incidents.rules.incident import (
    IncidentImpact,
    IncidentSource,
    IncidentStatus,
    clipped_title,
    lasted,
)
from ...incidents.tables import incidents
from ...incidents.transactions.escalate_incident import escalate
from ...incidents.transactions.page_service_route import (
    PagingRoute,
    page_route,
    record_page,
    stream_of,
)
from ...incidents.transactions.write_incident import (
    IncidentEntry,
    Opening,
    open_incident,
    write_entry,
)
from ...notifications.rules.notification import Notification
from ...notifications.rules.personal_rules import is_low
from ...notifications.transactions.enqueue_notifications import enqueue_to_notified_channels
from ...services.rows import ServiceRow
from ..queries.member_outages import MemberOutage
from ..rules.alert_episode import EpisodeDecision, ServiceCondition, tail_of
from ..tables import outages
from ..tables import service_episodes as episodes
from ..tables.service_episodes import EpisodeRow

OPENED_BODY = "Our monitoring shows a problem. We are investigating."
RECOVERED_BODY = "Our monitoring shows recovery."
WORSE_BODY = "The service is down. The impact is major."
DELETED_BODY = "The service was deleted."
# Recheck interval of adopted outages until the page is delivered, µs.
LOOK_US = 30_000_000


@dataclass(frozen=True, slots=True)
class EvaluatedService:
    """Evaluated service with its members.

    `incident` belongs to the open episode or is already open without an episode. `end_body` is
    the text of the update that resolves it.
    """

    service: ServiceRow
    live: ServiceCondition
    step: EpisodeDecision
    members: Sequence[MemberOutage]
    episode: EpisodeRow | None
    incident: IncidentRow | None
    end_body: str = RECOVERED_BODY

    @property
    def route(self) -> PagingRoute:
        return PagingRoute(self.service.escalation_policy, self.service.oncall_schedule)


async def open_episode(tx: Tx, spoken: EvaluatedService) -> tuple[EpisodeRow, IncidentRow]:
    """Opens an episode and its incident, with events for webhooks but without a page."""
    service = spoken.service
    episode = await episodes.begin_episode(tx, service.key, tx.now, spoken.live.value)
    incident = spoken.incident
    if incident is None:
        incident = await open_incident(tx, _opening(spoken, tx.now))
    await episodes.set_incident(tx, episode, incident.id)
    return structs.replace(episode, incident=incident.id), incident


async def announce_episode(
    tx: Tx, spoken: EvaluatedService, episode: EpisodeRow, incident: IncidentRow
) -> None:
    """Pages the service's route and adopts its members' unannounced outages."""
    service = spoken.service
    await take_over(tx, spoken, incident.id)
    await episodes.announce_episode(tx, episode)
    if service.escalation_policy is not None:
        incident = await incidents.start_escalation(tx, incident, service.escalation_policy)
        await escalate(tx, incident)
        return
    page = await _notification(tx, spoken, incident, "opened", incident.title)
    paged = await page_route(tx, stream_of(incident), spoken.route, page)
    await record_page(tx, incident, paged)


async def raise_impact(tx: Tx, spoken: EvaluatedService, incident: IncidentRow) -> IncidentRow:
    """Raises the impact when a degraded service goes down, so that its page does not wait.

    A low impact waits for the support hours, or is a ticket. If nobody has been paged yet, the
    escalation begins now.
    """
    if spoken.live is not ServiceCondition.DOWN or not is_low(incident.impact):
        return incident
    policy, has_waited = incident.escalation_policy, _has_waited(incident)
    incident = await incidents.set_impact(tx, incident, IncidentImpact.MAJOR)
    entry = IncidentEntry(status=None, body=WORSE_BODY, public=False, author=None)
    incident, _ = await write_entry(tx, incident, entry)
    if policy is not None and has_waited:
        incident = await incidents.start_escalation(tx, incident, policy)
        await escalate(tx, incident)
    return incident


def _has_waited(incident: IncidentRow) -> bool:
    """Returns whether the escalation has paged nobody because of the low impact."""
    is_taken_up = (
        incident.acknowledged_at is not None
        or incident.snoozed_until is not None
        or bool(incident.assigned_kind)
        or incident.resolved_at is not None
    )
    is_waiting = incident.is_postponed or incident.escalate_at is None
    return is_waiting and incident.escalation_step == 0 and not is_taken_up


async def take_over(tx: Tx, spoken: EvaluatedService, incident: int) -> None:
    members = [member.monitor for member in spoken.members]
    next_check_at = Instant(tx.now + LOOK_US)
    await outages.adopt_outages(tx, spoken.service.key, members, incident, next_check_at)


async def remind(
    tx: Tx, spoken: EvaluatedService, episode: EpisodeRow, incident: IncidentRow
) -> None:
    """Re-notifies the channels that were notified of the episode."""
    await episodes.remind_of_episode(tx, episode)
    tail = f" still has a problem after {lasted(tx.now - episode.began_at)}"
    title = clipped_title(spoken.service.name, tail)
    page = await _notification(tx, spoken, incident, "reminder", title)
    to = stream_of(incident)
    await enqueue_to_notified_channels(tx, to.org, to.project, to.stream, to.thread, to.topic, page)


async def end_episode(
    tx: Tx,
    episode: EpisodeRow,
    incident: IncidentRow | None,
    body: str = RECOVERED_BODY,
) -> None:
    """Ends the episode, releases its outages and resolves its incident.

    An incident that a user has resolved already sent its recovery.
    """
    await episodes.end_episode(tx, episode, tx.now)
    await outages.release_outages(tx, episode.key)
    await resolve(tx, incident, body)


async def resolve(tx: Tx, incident: IncidentRow | None, body: str) -> None:
    if incident is not None and incident.resolved_at is None:
        entry = IncidentEntry(status=IncidentStatus.RESOLVED, body=body, public=None, author=None)
        await write_entry(tx, incident, entry)


def _opening(spoken: EvaluatedService, now: Instant) -> Opening:
    service = spoken.service
    began = [m.since for m in spoken.members if m.outage is not None and m.since is not None]
    return Opening(
        org=service.org,
        project=service.project,
        monitor=None,
        service=service.id,
        title=clipped_title(service.name, tail_of(spoken.live)),
        status=IncidentStatus.INVESTIGATING,
        impact=IncidentImpact.MINOR
        if spoken.live is ServiceCondition.DEGRADED
        else IncidentImpact.MAJOR,
        source=IncidentSource.AUTO,
        body=OPENED_BODY,
        started_at=max(began, default=now),
        author=None,
    )


async def _notification(
    tx: Tx, spoken: EvaluatedService, incident: IncidentRow, what: str, title: str
) -> Notification:
    service = spoken.service
    project = await select_project_name(tx, service.org, service.project)
    failing = [member for member in spoken.members if member.outage is not None]
    lines = [f"Project {project}"]
    if failing:
        lines.append(_listed([member.name for member in failing]))
    return Notification(
        event=f"incident.{what}",
        status="down",
        severity=incident.impact,
        title=title,
        lines=tuple(lines),
        why=failing[0].why if failing else "",
        conditions=tuple(m.failed_condition for m in failing[:1] if m.failed_condition),
        since=incident.started_at,
        path=f"/incidents/{incident.uid}",
        runbook_url=service.runbook_url,
    )


def _listed(names: Sequence[str], most: int = 5) -> str:
    """Returns the first `most` names and the number of the others."""
    shown = ", ".join(name[:80] for name in names[:most])
    more = len(names) - most
    return f"Down: {shown} and {more} more" if more > 0 else f"Down: {shown}"
