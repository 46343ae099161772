"""Notices of the begin and the end of a warning, to the channels that take warnings.

A warning opens no incident, pages no person and changes no status.
"""

from uuid import UUID

from ...core.instant import Instant
from ...engine.pools import Tx
from ...notifications.queries.warning_channels import select_warning_channels
from ...notifications.rules.notification import Notification, Topic
from ...notifications.transactions.enqueue_notifications import (
    enqueue_pages,
    enqueue_to_notified_channels,
)
from ..tables.outages import LockedMonitor

BEGAN = "monitor.warning"
ENDED = "monitor.warning_ended"
DELETED = "The monitor was deleted or retired."
NOT_DOWN = "The monitor is not down."
# The certificate of a monitor that is down can be known too.
STATUS_UNCHANGED = "The warning does not change the status of the monitor."


async def notify_begin(
    tx: Tx, subject: LockedMonitor, thread: UUID, title: str, why: str, since: Instant, note: str
) -> None:
    channels = await select_warning_channels(tx, subject.org, subject.project)
    page = _notice(subject, BEGAN, "down", title, why, since, note)
    await enqueue_pages(
        tx, subject.org, subject.project, subject.uid, thread, Topic.MONITOR, channels, page
    )


async def notify_end(
    tx: Tx, subject: LockedMonitor, thread: UUID, title: str, why: str, since: Instant, note: str
) -> None:
    page = _notice(subject, ENDED, "recovered", title, why, since, note)
    await enqueue_to_notified_channels(
        tx, subject.org, subject.project, subject.uid, thread, Topic.MONITOR, page
    )


def _notice(
    subject: LockedMonitor,
    event: str,
    status: str,
    title: str,
    why: str,
    since: Instant,
    note: str,
) -> Notification:
    return Notification(
        event=event,
        status=status,
        severity="none",
        title=title,
        lines=(f"Project {subject.project_name}", note),
        why=why,
        since=since,
        path=f"/monitors/{subject.uid}",
        runbook_url=subject.runbook_url,
    )
