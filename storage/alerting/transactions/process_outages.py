"""Decides, and it alone, what follows from a monitor's going down or coming up.

It keeps true: of every outage people are told once, or it stands beside it why not yet; who was
told of it is told of its end; what was told after it began is told in that order. All of it is
written with what it tells, and nobody is told of what was not committed.

It goes by what is, under the lock of the states: status changes only say where to look, and that an
outage lay between two looks.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from uuid_utils.compat import uuid7

from ...core.instant import SECOND, Instant
from ...core.key import MonitorKey
from ...engine.pools import Tx
from ...incidents.rows import IncidentRow
from ...incidents.tables import incidents
from ...monitors.rules.monitor_state import MonitorStatus
from ...notifications.queries.global_silence import global_silence_in_force
from ...notifications.rules.global_silence import GlobalSilence
from ...scheduling.rules.maintenance_window import is_in_maintenance
from ...scheduling.tables import work_queues as queues
from ..queries.monitor_dependencies import DependencyState, select_surroundings
from ..rules.paging_delegation import SignalReason
from ..rules.suppression import MonitorCondition, Suppression, SuppressionReason, decide_suppression
from ..tables import outages
from ..tables.outages import LockedMonitor, OutageRow, SuppressionWrite
from .delegate_paging import (
    UNHEARD_LOOK_US,
    DelegationResult,
    OwnerIndex,
    decide_delegation,
    lock_owning_services,
)
from .notify_outage import notify_onset, notify_recovery, renotify_outage

# How soon an outage that is held is looked at again: while checks are waited for, and else.
WAITING_LOOK_US = SECOND // 4
HELD_LOOK_US = 5 * SECOND
# What has been left to a service for so long is borne by it, as a rule: no lease runs out sooner.
LEFT_YOUNG_US = 180 * SECOND
LEFT_LOOK_US = 30 * SECOND


@dataclass(slots=True)
class OutageCounts:
    """What came of a look: how many outages were told of, ended, told again, and are held, by what;
    how many checks were asked for; and what others held and nobody looked at."""

    announced: int = 0
    recovered: int = 0
    reminded: int = 0
    asked: int = 0
    held: Counter[SuppressionReason] = field(default_factory=Counter)
    # Of those announced, why the service that owns their paging could not speak.
    failed_open: Counter[SignalReason] = field(default_factory=Counter)
    busy: list[MonitorKey] = field(default_factory=list)

    @property
    def told(self) -> int:
        return self.announced + self.recovered + self.reminded


async def process_outages(
    tx: Tx, keys: Sequence[MonitorKey], *, is_steady: bool = True
) -> OutageCounts:
    """Looks at these monitors, but for those that somebody else holds just now, or one of the
    services that own their paging. Those that are gone are forgotten. `is_steady`: this process was
    there without a break for long enough to say that another is not."""
    done = OutageCounts()
    owning, waiting = await lock_owning_services(tx, sorted(keys))
    subjects, gone = await outages.lock_free_subjects(tx, sorted(set(keys) - set(waiting)))
    done.busy = sorted(set(keys) - subjects.keys() - set(gone))
    changes = await outages.pop_status_changes(tx, sorted([*subjects, *gone]))
    open_ = await outages.select_open_outages(tx, sorted(subjects))
    opened = await _lock_incidents(tx, subjects, open_)
    recovered_orgs = set()
    for key, subject in sorted(subjects.items()):
        row, ended = await _follow(tx, subject, changes.get(key, ()), open_.get(key))
        for past, at in ended:
            # Of what nobody was told, nobody is told that it is over.
            # Where a service told of it, it tells of the end as well.
            if past.announced_at is not None and past.service is None:
                await notify_recovery(tx, subject, past, opened.get(key), at)
                done.recovered += 1
        if ended:
            # It is over with its outage; the next one has its own.
            opened.pop(key, None)
        if row is None:
            open_.pop(key, None)
        else:
            open_[key] = row
        if ended or subject.status == MonitorStatus.UP:
            recovered_orgs.add(subject.org)
    if recovered_orgs:
        await outages.reschedule_outages_now(tx, recovered_orgs)
    await _notify(tx, subjects, open_, opened, owning, done, is_steady=is_steady)
    return done


async def _lock_incidents(
    tx: Tx, subjects: Mapping[MonitorKey, LockedMonitor], open_: Mapping[MonitorKey, OutageRow]
) -> dict[MonitorKey, IncidentRow]:
    """All before anything is told, as locks ascend: those of open outages, and where there is none
    yet, one that is open all the same."""
    named = {
        key: row.incident
        for key, row in open_.items()
        if row.incident is not None and row.service is None
    }
    unnamed = [
        key
        for key, subject in sorted(subjects.items())
        if key not in named and subject.status == MonitorStatus.DOWN
    ]
    return await incidents.lock_of_outages(tx, named, unnamed)


async def _follow(
    tx: Tx, subject: LockedMonitor, changes: Sequence[tuple[Instant, str]], row: OutageRow | None
) -> tuple[OutageRow | None, list[tuple[OutageRow, Instant]]]:
    """The outage that is open now, and those that ended with when they did."""
    ended: list[tuple[OutageRow, Instant]] = []
    # The state has the last word: a lost status change changes nothing about it.
    for at, new_status in [*changes, (subject.since, subject.status)]:
        if new_status == MonitorStatus.DOWN and row is None:
            row = await outages.begin_outage(tx, subject.key, at)
        elif new_status == MonitorStatus.UP and row is not None:
            end = max(at, row.began_at)
            await outages.end_outage(tx, row, end)
            ended.append((row, end))
            row = None
    return row, ended


async def _notify(
    tx: Tx,
    subjects: Mapping[MonitorKey, LockedMonitor],
    open_: Mapping[MonitorKey, OutageRow],
    opened: Mapping[MonitorKey, IncidentRow],
    owning: OwnerIndex,
    done: OutageCounts,
    *,
    is_steady: bool,
) -> None:
    if not open_:
        return
    around = await select_surroundings(tx, sorted(open_), tx.now)
    silence = await global_silence_in_force(tx)
    is_silenced = silence is not None
    holds: list[SuppressionWrite] = []
    asked: set[MonitorKey] = set()
    ready: list[OutageRow] = []
    for key, row in sorted(open_.items()):
        own = _own(subjects[key], around)
        if row.service is not None:
            await _watch_over(tx, row, own, ready, is_silenced=is_silenced)
            continue
        if row.announced_at is not None:
            may = not is_silenced and _may_remind(subjects[key], row, opened.get(key), around)
            done.reminded += await _remind(tx, subjects[key], row, opened.get(key), may=may)
            continue
        upstreams = around.upstreams[key]
        judgement = decide_suppression(own, upstreams, row.hold, tx.now, is_silenced=is_silenced)
        asked |= set(judgement.ask)
        if judgement.hold is None:
            ready.append(row)
        else:
            holds.append(_suppression_write(row, judgement.hold, tx.now, silence))
    left = await decide_delegation(tx, owning, ready, is_steady=is_steady)
    for row in ready:
        key = MonitorKey((row.org, row.monitor))
        holds += await _notify_or_delegate(tx, subjects[key], row, opened.get(key), left[key], done)
    done.held.update(SuppressionReason(hold.suppressed_by) for hold in holds)
    await outages.suppress_outages(tx, holds)
    await _ask(tx, asked, around)
    done.asked += len(asked)


async def _watch_over(
    tx: Tx, row: OutageRow, own: MonitorCondition, ready: list[OutageRow], *, is_silenced: bool
) -> None:
    """What a service told of is the monitor's to tell if nobody has heard, once it may."""
    if not is_silenced and own.enabled and not own.in_maintenance and own.is_down:
        ready.append(row)
    else:
        await outages.reschedule_outage(tx, row, row.notified_at, Instant(tx.now + UNHEARD_LOOK_US))


async def _notify_or_delegate(
    tx: Tx,
    subject: LockedMonitor,
    row: OutageRow,
    incident: IncidentRow | None,
    left: DelegationResult,
    done: OutageCounts,
) -> list[SuppressionWrite]:
    """The monitor tells of its outage, unless a service does."""
    if left.hold is not None:
        return [_suppression_write(row, left.hold, tx.now)]
    if left.is_told:
        await outages.reschedule_outage(tx, row, row.notified_at, left.next_check_at)
        return []
    if await notify_onset(tx, subject, row, incident, left.failed_open):
        done.announced += 1
        if left.failed_open is not None:
            done.failed_open[left.failed_open.reason] += 1
    return []


async def _remind(
    tx: Tx,
    subject: LockedMonitor,
    row: OutageRow,
    incident: IncidentRow | None,
    *,
    may: bool,
) -> bool:
    """Tells once more where it was asked for and is due; where it may not, it is soon looked at
    again."""
    if not subject.renotify_seconds:
        await outages.reschedule_outage(tx, row, row.notified_at, None)
        return False
    due = Instant((row.notified_at or row.began_at) + subject.renotify_seconds * SECOND)
    if due > tx.now:
        await outages.reschedule_outage(tx, row, row.notified_at, due)
        return False
    if may:
        await renotify_outage(tx, subject, row, incident)
    again = Instant(tx.now + (subject.renotify_seconds * SECOND if may else HELD_LOOK_US))
    await outages.reschedule_outage(tx, row, tx.now if may else row.notified_at, again)
    return may


def _may_remind(
    subject: LockedMonitor, row: OutageRow, incident: IncidentRow | None, around: DependencyState
) -> bool:
    """As long as nobody has taken it up, it is known to be so, and there is no cause beside it."""
    own = _own(subject, around)
    if not own.enabled or own.in_maintenance or not own.is_down:
        return False
    if any(upstream.silences for upstream in around.upstreams[subject.key]):
        return False
    if row.incident is None:
        return True
    # Taken up, or said to be over by a person.
    return (
        incident is not None and incident.acknowledged_at is None and incident.resolved_at is None
    )


def _own(subject: LockedMonitor, around: DependencyState) -> MonitorCondition:
    health = around.health
    standing = health.standings.get(subject.key)
    spans = health.maintenance.get(subject.monitor, ())
    last_at = standing.last_at if standing is not None else None
    return MonitorCondition(
        key=subject.key,
        enabled=subject.enabled,
        in_maintenance=is_in_maintenance(health.now, spans),
        is_down=around.is_down(subject.key),
        probed=around.kinds[subject.key].is_probed,
        last_at=last_at if last_at is not None else subject.since,
        timeout_us=subject.timeout_seconds * SECOND,
    )


def _suppression_write(
    row: OutageRow, hold: Suppression, now: Instant, silence: GlobalSilence | None = None
) -> SuppressionWrite:
    if silence is not None and hold.by is SuppressionReason.SILENCED:
        next_check_at = silence.next_check_at(now)
    elif hold.by in (SuppressionReason.WAITING, SuppressionReason.RECHECKING):
        next_check_at = Instant(now + WAITING_LOOK_US)
    elif hold.by is SuppressionReason.DELEGATED and now - (hold.since or now) >= LEFT_YOUNG_US:
        next_check_at = Instant(now + LEFT_LOOK_US)
    else:
        next_check_at = Instant(now + HELD_LOOK_US)
    return SuppressionWrite(row.org, row.id, hold.by, hold.since, hold.until, next_check_at)


async def _ask(tx: Tx, asked: set[MonitorKey], around: DependencyState) -> None:
    """One run of each serves all who wait for it."""
    for key in sorted(asked):
        kind = around.kinds[key]
        until = Instant(tx.now + kind.timeout_seconds * SECOND)
        await queues.add_job(tx, uuid7(), *key, kind.shard, "onset", tx.now, until, replace=False)
