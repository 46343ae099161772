"""Begin and end of a slow warning, with the notices to the channels that take warnings."""

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from uuid_utils.compat import uuid7

from ...core.instant import Instant
from ...core.key import MonitorKey
from ...engine.pools import Tx
from ..queries.quiet_monitors import select_quiet
from ..rules.outage_text import slow_ended_title, slow_text, slow_title
from ..rules.slow_warning import SlowChange, SlowState
from ..tables import slow_warnings
from ..tables.outages import LockedMonitor, lock_free_subjects
from .notify_warning import DELETED, NOT_DOWN, notify_begin, notify_end

TURNED_OFF = "The threshold was removed."


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
        title, why = slow_title(subject.name), slow_text(change.latency_ms, decision.above_ms)
        await notify_begin(tx, subject, thread, title, why, change.at, NOT_DOWN)
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


async def _end(tx: Tx, subject: LockedMonitor, thread: UUID, since: Instant, why: str) -> None:
    title = slow_ended_title(subject.name)
    await notify_end(tx, subject, thread, title, why, since, NOT_DOWN)
