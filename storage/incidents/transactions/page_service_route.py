"""Paging of a service's route: the first step with an available channel, or on-call.

It serves notifications without an escalation. The caller locks the subject of the stream.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from uuid import UUID

from ...engine.pools import Tx
from ...notifications.queries.ticket_destinations import select_ticket_destinations
from ...notifications.rules.notification import Notification, Topic
from ...notifications.transactions.enqueue_notifications import enqueue_pages
from ...oncall.rules.escalation import EscalationTarget, TargetKind
from ...oncall.tables.escalation_policies import select_expanded_ladder
from ...oncall.transactions.resolve_targets import channels_of_step
from .. import rows as incidents_rows
from ..rows import IncidentRow
from ..tables import incident_escalations as ladders
from .name_recipients import paged_names


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """Stream that orders the events, and the thread that groups them for recipients."""

    org: int
    project: int
    stream: UUID
    thread: UUID
    topic: Topic


@dataclass(frozen=True, slots=True)
class PagingRoute:
    """Paging route of a service. The escalation policy takes precedence over the schedule."""

    policy: int | None
    schedule: int | None


def stream_of(incident: IncidentRow) -> Stream:
    return Stream(
        org=incident.org,
        project=incident.project,
        stream=incident.uid,
        thread=incident.uid,
        topic=Topic.INCIDENT,
    )


async def page_route(
    tx: Tx, to: Stream, route: PagingRoute, page: Notification, *, spared: Collection[int] = ()
) -> list[int]:
    """Pages the first step that reaches a channel. Returns the paged channels.

    Channels in `spared` get the notification otherwise and count as reached. A ticket goes to the
    ticket destinations of the project, if it has any.
    """
    tickets = await select_ticket_destinations(tx, to.org, to.project, page.severity)
    if tickets:
        return await page_stream(tx, to, [one for one in tickets if one not in spared], page)
    for targets in await _steps(tx, to.org, route):
        channels = await channels_of_step(tx, to.org, targets, tx.now)
        wanted = [channel for channel in channels if channel not in spared]
        paged = await page_stream(tx, to, wanted, page)
        if paged or len(wanted) < len(channels):
            return paged
    return []


async def page_stream(
    tx: Tx, to: Stream, channels: Collection[int], page: Notification
) -> list[int]:
    return await enqueue_pages(
        tx, to.org, to.project, to.stream, to.thread, to.topic, channels, page
    )


async def record_page(tx: Tx, incident: IncidentRow, paged: Sequence[int]) -> None:
    """Records the channels that were paged outside the escalation policy."""
    names = await paged_names(tx, incident.org, incident.uid, paged)
    told = [names[channel] for channel in paged if channel in names]
    await ladders.insert_page(tx, incident.org, incident.id, incidents_rows.OWN_CHANNELS, told, [])


async def _steps(tx: Tx, org: int, route: PagingRoute) -> list[Sequence[EscalationTarget]]:
    if route.policy is not None:
        ladder = await select_expanded_ladder(tx, org, route.policy)
        return [] if ladder is None else [step.targets for step in ladder.steps]
    if route.schedule is not None:
        return [(EscalationTarget(TargetKind.SCHEDULE, route.schedule),)]
    return []
