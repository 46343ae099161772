"""Opens, notifies and closes outages.

`notify_episode` adopts and releases outages. The retirement or deletion of a monitor ends its
outage. Invariants: every outage is announced once, or has a suppression reason. Channels that were
notified get the recovery. Notifications of one outage are in order. The announced outage of a
flapping monitor ends when it has settled. State and notifications are
committed together.

The locked monitor state decides. Status changes only select the monitors and show outages that
lie between two passes.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
from uuid_utils.compat import uuid7

from ...core.instant import SECOND, Instant
from ...core.key import MonitorKey
from ...engine.pools import Tx
from ...incidents.rows import IncidentRow
from ...incidents.tables import incidents
from ...monitors.rules.monitor_state import MonitorStatus
from ...mutes.queries import mutes_of_monitors
from ...mutes.rows import MuteRow
from ...mutes.rules.mute import next_check_at
from ...notifications.queries.global_silence import global_silence_in_force
from ...notifications.rules.global_silence import GlobalSilence
from ...scheduling.rules.maintenance_window import is_in_maintenance
from ...scheduling.tables import work_queues as queues
from ..queries.monitor_dependencies import DependencyState, select_surroundings
from ..rules.paging_delegation import SignalReason
from ..rules.suppression import (
    MonitorCondition,
    Suppression,
    SuppressionReason,
    Upstream,
    decide_suppression,
)
from ..tables import outages
from ..tables.flap_states import clear_flap_states, put_flap_states, select_flap_states
from ..tables.outages import LockedMonitor, OutageRow, SuppressionWrite
from .delegate_paging import (
    UNHEARD_LOOK_US,
    DelegationResult,
    OwnerIndex,
    decide_delegation,
    lock_owning_services,
)
from .flap_tracker import FlapStates
from .notify_outage import announce_again, notify_onset, notify_recovery, renotify_outage

# Recheck intervals of suppressed outages: while a check is awaited, and otherwise.
WAITING_LOOK_US = SECOND // 4
HELD_LOOK_US = 5 * SECOND
# A delegation of this age is rechecked less often. Invariant: longer than any lease.
LEFT_YOUNG_US = 180 * SECOND
LEFT_LOOK_US = 30 * SECOND


@dataclass(slots=True)
class OutageCounts:
    """Counts of one pass. `held` counts suppressed outages by reason, `asked` extra runs.

    `busy` contains the monitors that were skipped because of a lock.
    """

    announced: int = 0
    recovered: int = 0
    reminded: int = 0
    asked: int = 0
    held: Counter[SuppressionReason] = field(default_factory=Counter)
    # Announced outages by the reason why the owning service could not page.
    failed_open: Counter[SignalReason] = field(default_factory=Counter)
    busy: list[MonitorKey] = field(default_factory=list)

    @property
    def told(self) -> int:
        return self.announced + self.recovered + self.reminded


async def process_outages(
    tx: Tx, keys: Sequence[MonitorKey], *, is_steady: bool = True
) -> OutageCounts:
    """Processes the outages of the given monitors.

    Skips a monitor if another transaction has locked it or a service that owns its paging. Deletes
    the status changes of deleted monitors.

    Args:
        is_steady: this process ran without interruption long enough to judge a lease as expired.
    """
    done = OutageCounts()
    owning, waiting = await lock_owning_services(tx, sorted(keys))
    subjects, gone = await outages.lock_free_subjects(tx, sorted(set(keys) - set(waiting)))
    done.busy = sorted(set(keys) - subjects.keys() - set(gone))
    changes = await outages.pop_status_changes(tx, sorted([*subjects, *gone]))
    open_ = await outages.select_open_outages(tx, sorted(subjects))
    opened = await _lock_incidents(tx, subjects, open_)
    undamped = [key for key in sorted(changes) if key in subjects]
    undamped = [key for key in undamped if not subjects[key].flap_threshold]
    await clear_flap_states(tx, undamped)
    flaps = FlapStates(await select_flap_states(tx, sorted(subjects)))
    recovered_orgs = set()
    for key, subject in sorted(subjects.items()):
        row, ended = await _follow(
            tx, subject, changes.get(key, ()), open_.get(key), opened.get(key), flaps
        )
        for past, at in ended:
            # Unannounced outages get no recovery notification. The service that announced an
            # outage also notifies of its end.
            if past.announced_at is not None and past.service is None:
                await notify_recovery(tx, subject, past, opened.get(key), at)
                done.recovered += 1
        if ended:
            # The incident ends with its outage; a later outage opens another.
            opened.pop(key, None)
        if row is None:
            open_.pop(key, None)
        else:
            open_[key] = row
        if ended or subject.status == MonitorStatus.UP:
            recovered_orgs.add(subject.org)
    if recovered_orgs:
        await outages.reschedule_outages_now(tx, recovered_orgs)
    await _notify(tx, subjects, open_, opened, owning, flaps, done, is_steady=is_steady)
    await put_flap_states(tx, flaps.changed)
    return done


async def _lock_incidents(
    tx: Tx, subjects: Mapping[MonitorKey, LockedMonitor], open_: Mapping[MonitorKey, OutageRow]
) -> dict[MonitorKey, IncidentRow]:
    """Locks all incidents before any notification, in ascending lock order.

    These are the incidents of open outages, and for other down monitors an incident that is open.
    """
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
    tx: Tx,
    subject: LockedMonitor,
    changes: Sequence[tuple[Instant, str]],
    row: OutageRow | None,
    incident: IncidentRow | None,
    flaps: FlapStates,
) -> tuple[OutageRow | None, list[tuple[OutageRow, Instant]]]:
    """Returns the open outage, and the ended outages with the instants of their end.

    The announced outage of a flapping monitor stays open while the monitor is up.
    """
    ended: list[tuple[OutageRow, Instant]] = []

    async def end(past: OutageRow, at: Instant) -> None:
        until = max(at, past.began_at)
        await outages.end_outage(tx, past, until)
        ended.append((past, until))

    # The state is applied last, so that a lost status change has no effect.
    for at, new_status in [*changes, (subject.since, subject.status)]:
        recovered = flaps.recovered_by(subject, at, row, incident)
        if recovered is not None and row is not None:
            await end(row, recovered)
            row = None
        flaps.follow(subject, at, new_status, is_alerting=row is not None)
        if new_status == MonitorStatus.DOWN and row is None:
            row = await outages.begin_outage(tx, subject.key, at)
        elif new_status == MonitorStatus.UP and row is not None:
            if flaps.keeps_open(subject, row, incident):
                continue
            await end(row, at)
            row = None
    recovered = flaps.recovered_by(subject, tx.now, row, incident)
    if recovered is not None and row is not None:
        await end(row, recovered)
        row = None
    return row, ended


async def _notify(
    tx: Tx,
    subjects: Mapping[MonitorKey, LockedMonitor],
    open_: Mapping[MonitorKey, OutageRow],
    opened: Mapping[MonitorKey, IncidentRow],
    owning: OwnerIndex,
    flaps: FlapStates,
    done: OutageCounts,
    *,
    is_steady: bool,
) -> None:
    if not open_:
        return
    around = await select_surroundings(tx, sorted(open_), tx.now)
    silence = await global_silence_in_force(tx)
    mutes = await mutes_of_monitors(tx, sorted(open_), owning.of)
    holds: list[SuppressionWrite] = []
    asked: set[MonitorKey] = set()
    ready: list[OutageRow] = []
    for key, row in sorted(open_.items()):
        own = _own(subjects[key], around)
        muted_check = _muted_check(silence, mutes.get(key, ()), tx.now)
        is_silenced = muted_check is not None
        if row.service is not None:
            await _watch_over(tx, row, own, ready, is_silenced=is_silenced)
            continue
        if row.announced_at is not None:
            is_known = not is_silenced and _is_known(own, around.upstreams[key])
            done.reminded += await _follow_up(
                tx, subjects[key], row, opened.get(key), flaps, is_known=is_known
            )
            continue
        upstreams = around.upstreams[key]
        judgement = decide_suppression(own, upstreams, row.hold, tx.now, is_silenced=is_silenced)
        asked |= set(judgement.ask)
        if judgement.hold is None:
            ready.append(row)
        else:
            holds.append(_suppression_write(row, judgement.hold, tx.now, muted_check))
    left = await decide_delegation(tx, owning, ready, is_steady=is_steady)
    # By project, as the number of a new incident locks the counter of its project.
    for row in sorted(ready, key=lambda one: _place(subjects, one)):
        key = MonitorKey((row.org, row.monitor))
        holds += await _notify_or_delegate(
            tx, subjects[key], row, opened.get(key), left[key], flaps, done
        )
    done.held.update(SuppressionReason(hold.suppressed_by) for hold in holds)
    await outages.suppress_outages(tx, holds)
    await _ask(tx, asked, around)
    done.asked += len(asked)


def _place(subjects: Mapping[MonitorKey, LockedMonitor], row: OutageRow) -> tuple[int, int, int]:
    return row.org, subjects[MonitorKey((row.org, row.monitor))].project, row.monitor


async def _watch_over(
    tx: Tx, row: OutageRow, own: MonitorCondition, ready: list[OutageRow], *, is_silenced: bool
) -> None:
    """Lets the monitor announce a service's outage if its page fails and it may alert."""
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
    flaps: FlapStates,
    done: OutageCounts,
) -> list[SuppressionWrite]:
    """Announces the outage, unless a service pages for it."""
    if left.hold is not None:
        return [_suppression_write(row, left.hold, tx.now)]
    if left.is_told:
        await outages.reschedule_outage(tx, row, row.notified_at, left.next_check_at)
        return []
    settles_at = flaps.settles_at(subject.key)
    is_settled = settles_at is not None and settles_at <= tx.now
    again_at = None if is_settled else settles_at
    if await notify_onset(tx, subject, row, incident, left.failed_open, again_at):
        done.announced += 1
        if is_settled:
            # An outage that was held back is announced late: a reminder would repeat that.
            flaps.settle(subject.key)
        if left.failed_open is not None:
            done.failed_open[left.failed_open.reason] += 1
    return []


async def _follow_up(
    tx: Tx,
    subject: LockedMonitor,
    row: OutageRow,
    incident: IncidentRow | None,
    flaps: FlapStates,
    *,
    is_known: bool,
) -> int:
    """Re-notifies of an announced outage if that is due. Returns the number of notifications."""
    settles_at = flaps.settles_at(subject.key)
    if is_known and settles_at is not None and settles_at <= tx.now:
        # A flapping monitor stayed down. This is said although somebody acknowledged the alert,
        # which was one of a monitor that also recovered.
        await announce_again(tx, subject, row, incident)
        flaps.settle(subject.key)
        told = msgspec.structs.replace(row, notified_at=tx.now)
        await _remind(tx, subject, told, incident, None, may=False)
        return 1
    may = is_known and _may_remind(tx, row, incident)
    return await _remind(tx, subject, row, incident, settles_at, may=may)


async def _remind(
    tx: Tx,
    subject: LockedMonitor,
    row: OutageRow,
    incident: IncidentRow | None,
    settles_at: Instant | None,
    *,
    may: bool,
) -> bool:
    """Re-notifies if due. If suppressed, reschedules the outage after a short interval.

    `settles_at` is when a flapping monitor has settled; the outage is due then too.
    """
    if settles_at is not None:
        settles_at = max(settles_at, Instant(tx.now + HELD_LOOK_US))
    if not subject.renotify_seconds:
        await outages.reschedule_outage(tx, row, row.notified_at, settles_at)
        return False
    due = Instant((row.notified_at or row.began_at) + subject.renotify_seconds * SECOND)
    if due > tx.now:
        await outages.reschedule_outage(tx, row, row.notified_at, min(due, settles_at or due))
        return False
    if may:
        await renotify_outage(tx, subject, row, incident)
    again = Instant(tx.now + (subject.renotify_seconds * SECOND if may else HELD_LOOK_US))
    again = min(again, settles_at or again)
    await outages.reschedule_outage(tx, row, tx.now if may else row.notified_at, again)
    return may


def _is_known(own: MonitorCondition, upstreams: Sequence[Upstream]) -> bool:
    """Returns whether the monitor is still known to be down, without a cause."""
    if not own.enabled or own.in_maintenance or not own.is_down:
        return False
    return not any(upstream.silences for upstream in upstreams)


def _may_remind(tx: Tx, row: OutageRow, incident: IncidentRow | None) -> bool:
    """Returns whether nobody has answered the outage."""
    if row.incident is None:
        return True
    # An acknowledged, snoozed or resolved incident is not re-notified.
    return (
        incident is not None
        and not incident.is_acknowledged
        and not incident.is_snoozed(tx.now)
        and incident.resolved_at is None
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


def _muted_check(
    silence: GlobalSilence | None, mutes: Sequence[MuteRow], now: Instant
) -> Instant | None:
    """Returns when to check a muted monitor again, None if no mute is in force."""
    checks = [] if silence is None else [silence.next_check_at(now)]
    return min([*checks, *(next_check_at(mute.ends_at, now) for mute in mutes)], default=None)


def _suppression_write(
    row: OutageRow, hold: Suppression, now: Instant, muted_check: Instant | None = None
) -> SuppressionWrite:
    if muted_check is not None and hold.by is SuppressionReason.SILENCED:
        next_check_at = muted_check
    elif hold.by in (SuppressionReason.WAITING, SuppressionReason.RECHECKING):
        next_check_at = Instant(now + WAITING_LOOK_US)
    elif hold.by is SuppressionReason.DELEGATED and now - (hold.since or now) >= LEFT_YOUNG_US:
        next_check_at = Instant(now + LEFT_LOOK_US)
    else:
        next_check_at = Instant(now + HELD_LOOK_US)
    return SuppressionWrite(row.org, row.id, hold.by, hold.since, hold.until, next_check_at)


async def _ask(tx: Tx, asked: set[MonitorKey], around: DependencyState) -> None:
    """Requests extra runs. One run per monitor serves all outages that wait for it."""
    for key in sorted(asked):
        kind = around.kinds[key]
        until = Instant(tx.now + kind.timeout_seconds * SECOND)
        await queues.add_job(tx, uuid7(), *key, kind.shard, "onset", tx.now, until, replace=False)
