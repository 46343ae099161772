"""Notifications of a monitor's outage: onset, reminders and recovery.

With an incident, they belong to the incident's stream, and its escalation policy starts at the
onset. Without an incident, they belong to the monitor's stream.
"""

from ...core.instant import SECOND, Instant
from ...engine.pools import Tx
from ...incidents import rows as incidents_rows
from ...incidents.rows import IncidentRow
from ...incidents.rules.incident import IncidentImpact, IncidentSource, IncidentStatus
from ...incidents.tables import incident_escalations as ladders
from ...incidents.tables.incidents import start_escalation
from ...incidents.transactions.escalate_incident import escalate, restart_escalation
from ...incidents.transactions.page_service_route import (
    PagingRoute,
    Stream,
    page_route,
    page_stream,
    record_page,
)
from ...incidents.transactions.write_incident import (
    IncidentEntry,
    Opening,
    open_incident,
    write_entry,
)
from ...notifications.queries.channels import select_channels_of_monitor
from ...notifications.rules.notification import Notification, Topic
from ...notifications.transactions.enqueue_notifications import enqueue_to_notified_channels
from ..rules.outage_text import (
    OPENED_BODY,
    RECOVERED_BODY,
    STAYS_DOWN_BODY,
    down_title,
    recovered_title,
    still_down_title,
)
from ..tables import outages
from ..tables.outages import LockedMonitor, OutageRow
from .delegate_paging import FailedOpen

TRANSITION = "monitor_transition"


async def notify_onset(
    tx: Tx,
    subject: LockedMonitor,
    row: OutageRow,
    incident: IncidentRow | None,
    failed_open: FailedOpen | None = None,
    settles_at: Instant | None = None,
) -> bool:
    """Announces an outage. Returns False if a service has announced it first.

    Opens an incident if the monitor has automatic incidents and `incident` is None. Pages the
    monitor's channels and the first escalation step, each channel once. After a fail-open, a
    monitor without a paged channel or escalation pages the service's route. `settles_at` is when
    a flapping monitor has settled; the outage is due then too.
    """
    next_check_at = settles_at
    if subject.renotify_seconds:
        again = Instant(tx.now + subject.renotify_seconds * SECOND)
        next_check_at = min(again, settles_at or again)
    reason = None if failed_open is None else failed_open.reason.value
    known = incident.id if incident else None
    if not await outages.announce_outage(tx, row, known, next_check_at, reason):
        return False
    if incident is None and subject.auto_incident:
        incident = await open_incident(tx, _opening(subject, row))
        await outages.set_incident(tx, row, incident.id)
    page = _notification(subject, row, incident, "opened", down_title(subject.name))
    paged = await _page_own_channels(tx, subject, row, incident, page)
    if incident is not None and incident.escalate_at is not None:
        await escalate(tx, incident, spared=paged)
    elif failed_open is not None and not paged:
        await _page_instead(tx, subject, row, incident, failed_open.route, page)
    return True


async def _page_instead(
    tx: Tx,
    subject: LockedMonitor,
    row: OutageRow,
    incident: IncidentRow | None,
    route: PagingRoute,
    page: Notification,
) -> None:
    if incident is not None and route.policy is not None:
        await escalate(tx, await start_escalation(tx, incident, route.policy))
        return
    paged = await page_route(tx, _stream(subject, row, incident), route, page)
    if incident is not None:
        await record_page(tx, incident, paged)


def _stream(subject: LockedMonitor, row: OutageRow, incident: IncidentRow | None) -> Stream:
    return Stream(
        org=subject.org,
        project=subject.project,
        stream=subject.uid if incident is None else incident.uid,
        thread=row.uid if incident is None else incident.uid,
        topic=Topic.MONITOR if incident is None else Topic.INCIDENT,
    )


async def announce_again(
    tx: Tx, subject: LockedMonitor, row: OutageRow, incident: IncidentRow | None
) -> None:
    """Announces an open outage as a new one: an acknowledgement or a snooze does not apply to it.

    The monitor's own channels get a reminder, and the escalation takes its first step.
    """
    paged = await renotify_outage(tx, subject, row, incident)
    if incident is not None and incident.resolved_at is None:
        await restart_escalation(tx, incident, STAYS_DOWN_BODY, spared=paged)


async def renotify_outage(
    tx: Tx, subject: LockedMonitor, row: OutageRow, incident: IncidentRow | None
) -> list[int]:
    """Reminds the monitor's own channels. Returns the ids of those that were paged."""
    title = still_down_title(subject.name, row.began_at, tx.now)
    page = _notification(subject, row, incident, "reminder", title)
    return await _page_own_channels(tx, subject, row, incident, page)


async def notify_recovery(
    tx: Tx, subject: LockedMonitor, row: OutageRow, incident: IncidentRow | None, at: Instant
) -> None:
    """Notifies of a recovery. An incident that a user resolved already sent its recovery."""
    if row.incident is None:
        await notify_end(tx, subject, row, recovered_title(subject.name, row.began_at, at))
    elif incident is not None and incident.resolved_at is None:
        entry = IncidentEntry(
            status=IncidentStatus.RESOLVED, body=RECOVERED_BODY, public=None, author=None
        )
        await write_entry(tx, incident, entry)


async def notify_end(tx: Tx, subject: LockedMonitor, row: OutageRow, title: str) -> None:
    """Notifies the channels that got the onset of the end of an outage without an incident."""
    page = _notification(subject, row, None, "recovered", title, status="recovered")
    await enqueue_to_notified_channels(
        tx, subject.org, subject.project, subject.uid, row.uid, TRANSITION, page
    )


def _opening(subject: LockedMonitor, row: OutageRow) -> Opening:
    return Opening(
        org=subject.org,
        project=subject.project,
        monitor=subject.monitor,
        title=down_title(subject.name),
        status=IncidentStatus.INVESTIGATING,
        impact=IncidentImpact.MAJOR,
        source=IncidentSource.AUTO,
        body=OPENED_BODY,
        started_at=row.began_at,
        author=None,
        escalation_policy=subject.escalation_policy,
        conditions=row.conditions,
    )


def _notification(
    subject: LockedMonitor,
    row: OutageRow,
    incident: IncidentRow | None,
    what: str,
    title: str,
    status: str = "down",
) -> Notification:
    if incident is not None:
        event, path = f"incident.{what}", f"/incidents/{incident.uid}"
    else:
        event, path = f"monitor.{_OF_MONITOR[what]}", f"/monitors/{subject.uid}"
    return Notification(
        event=event,
        status=status,
        severity=IncidentImpact.MAJOR.value,
        title=title,
        lines=(f"Project {subject.project_name}",),
        why=row.why,
        conditions=row.conditions if status == "down" else (),
        since=row.began_at,
        path=path,
        runbook_url=subject.runbook_url,
    )


_OF_MONITOR = {"opened": "down", "reminder": "reminder", "recovered": "recovered"}


async def _page_own_channels(
    tx: Tx, subject: LockedMonitor, row: OutageRow, incident: IncidentRow | None, page: Notification
) -> list[int]:
    """Pages the monitor's own channels. Returns the ids of those that were paged."""
    channels = await select_channels_of_monitor(tx, subject.org, subject.monitor)
    if not channels:
        return []
    paged = await page_stream(
        tx, _stream(subject, row, incident), [channel.id for channel in channels], page
    )
    if incident is not None:
        told = [channel.name for channel in channels if channel.id in paged]
        lost = [channel.name for channel in channels if channel.id not in paged]
        await ladders.insert_page(
            tx, subject.org, incident.id, incidents_rows.OWN_CHANNELS, told, lost
        )
    return paged
