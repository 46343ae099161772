"""Begin and end of a slow warning, with the notices to the channels that take warnings.

A warning opens no incident, pages no person and changes no status.
"""

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from uuid_utils.compat import uuid7

from ...core.instant import Instant
from ...core.key import MonitorKey
from ...engine.pools import Tx
from ...notifications.queries.warning_channels import select_warning_channels
from ...notifications.rules.notification import Notification, Topic
from ...notifications.transactions.enqueue_notifications import (
    enqueue_pages,
    enqueue_to_notified_channels,
)
from ..queries.quiet_monitors import select_quiet
from ..rules.outage_text import slow_ended_title, slow_text, slow_title
from ..rules.slow_warning import SlowChange, SlowState
from ..tables import slow_warnings
from ..tables.outages import LockedMonitor, lock_free_subjects

BEGAN = "monitor.warning"
ENDED = "monitor.warning_ended"
TURNED_OFF = "The threshold was removed."
DELETED = "The monitor was deleted or retired."


class SlowOutcome(StrEnum):
    BEGAN = "began"
    ENDED = "ended"
    # Another transaction has locked the monitor or changed the warning, or the begin has to wait:
    # the monitor is silenced, muted or in maintenance.
    LATER = "later"


@dataclass(frozen=True, slots=True)
class SlowDecision:
    """SlowDecision about a monitor whose stored warning was `before`.

    `change` is None if the threshold was removed.
    """

    key: MonitorKey
    before: tuple[Instant | None, Instant | None]
    after: SlowState
    above_ms: int
    change: SlowChange | None


async def tell_slow(tx: Tx, decision: SlowDecision) -> SlowOutcome:
    """Stores a decision and queues its notices, unless something changed since the read."""
    key, change = decision.key, decision.change
    subjects, _ = await lock_free_subjects(tx, [key])
    subject = subjects.get(key)
    stored = await slow_warnings.select_stored(tx, key)
    if subject is None or stored is None:
        return SlowOutcome.LATER
    if (stored.seen, stored.since, stored.above_ms) != (*decision.before, decision.above_ms):
        return SlowOutcome.LATER
    if change is not None and change.is_slow:
        if await select_quiet(tx, [key]):
            return SlowOutcome.LATER
        thread = uuid7()
        await slow_warnings.put_warning(tx, key, decision.after, thread)
        await _begin(tx, subject, thread, change, decision.above_ms)
        return SlowOutcome.BEGAN
    if change is None:
        await slow_warnings.drop_warning(tx, key)
    elif stored.thread is not None:
        await slow_warnings.put_warning(tx, key, decision.after, stored.thread)
    if stored.since is not None and stored.thread is not None:
        why = TURNED_OFF if change is None else slow_text(change.latency_ms, decision.above_ms)
        await _end(tx, subject, stored.thread, stored.since, why)
    return SlowOutcome.ENDED


async def end_of_deleted(tx: Tx, subject: LockedMonitor) -> None:
    """Ends the warning of a locked monitor that is deleted or retired, if it has one."""
    stored = await slow_warnings.select_stored(tx, subject.key)
    if stored is None or stored.thread is None:
        return
    await slow_warnings.drop_warning(tx, subject.key)
    if stored.since is not None:
        await _end(tx, subject, stored.thread, stored.since, DELETED)


async def _begin(
    tx: Tx, subject: LockedMonitor, thread: UUID, change: SlowChange, above_ms: int
) -> None:
    channels = await select_warning_channels(tx, subject.org, subject.project)
    title, why = slow_title(subject.name), slow_text(change.latency_ms, above_ms)
    page = _notice(subject, BEGAN, "down", title, why, change.at)
    await enqueue_pages(
        tx, subject.org, subject.project, subject.uid, thread, Topic.MONITOR, channels, page
    )


async def _end(tx: Tx, subject: LockedMonitor, thread: UUID, since: Instant, why: str) -> None:
    page = _notice(subject, ENDED, "recovered", slow_ended_title(subject.name), why, since)
    await enqueue_to_notified_channels(
        tx, subject.org, subject.project, subject.uid, thread, Topic.MONITOR, page
    )


def _notice(
    subject: LockedMonitor, event: str, status: str, title: str, why: str, since: Instant
) -> Notification:
    return Notification(
        event=event,
        status=status,
        severity="none",
        title=title,
        lines=(f"Project {subject.project_name}", "The monitor is not down."),
        why=why,
        since=since,
        path=f"/monitors/{subject.uid}",
        runbook_url=subject.runbook_url,
    )
