"""State of one monitor in a batch: the locked row, the folded results and the write."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from uuid_utils.compat import uuid7

from ...core.instant import SECOND, Instant
from ...core.key import MonitorKey
from ...engine.pools import Tx
from ...monitors.rules.monitor_state import (
    MonitorState,
    MonitorStatus,
    StatusChange,
    fold,
    is_foldable,
)
from ...monitors.tables import composite_wakeups
from ...scheduling.rules.run_schedule import confirm_at
from ...scheduling.tables import shards as schedules
from ...scheduling.tables import work_queues as queues
from ..rules.incoming_result import CachedState, IncomingResult
from ..tables import results
from ..tables.results import LockedState, StateWrite
from .push_expectations import PUSH, PUSH_MISSED, PushExpectation, load_promises

COMPOSITE = "composite"
# A push monitor cannot be probed, and each run of a canary is a real transaction.
UNCONFIRMED = frozenset({PUSH, "async_canary", "domain"})
# Time after its due instant in which a confirming run is still useful.
CONFIRM_CLAIM_US = 30 * SECOND


@dataclass(slots=True)
class StateUpdate:
    locked: LockedState
    newest: Instant | None
    promise: PushExpectation | None
    state: MonitorState
    silent_since: Instant | None
    last_heartbeat: Instant | None
    flips: list[StatusChange] = field(default_factory=list)
    failed_last: bool = False
    # A stored result is not folded. Readers see it by the new version.
    is_passed_over: bool = False

    def take(self, arrival: IncomingResult) -> None:
        """Folds a stored live result. Ignores results older than the newest folded one."""
        missed = arrival.msg == PUSH_MISSED
        if not missed:
            self.last_heartbeat = max(arrival.ts, self.last_heartbeat or arrival.ts)
        if not is_foldable(arrival.ts, self.newest):
            self.is_passed_over = True
            if self.silent_since is not None and not missed:
                self.silent_since = max(self.silent_since, arrival.ts)
            return
        if missed and self.silent_since is None:
            self.silent_since = self.last_heartbeat
        elif not missed:
            self.silent_since = None
        before = self.state
        row = self.locked
        self.state = fold(
            before, arrival.up, arrival.ts, row.failure_threshold, row.recovery_threshold
        )
        self.newest = arrival.ts
        self.failed_last = not arrival.up
        if self.state.status is not before.status:
            self.flips.append(
                StatusChange(*arrival.key, arrival.ts, before.status, self.state.status)
            )

    @property
    def is_changed(self) -> bool:
        row = self.locked
        was = (row.status, row.failures, row.successes, row.silent_since)
        state = self.state
        return self.is_passed_over or was != (
            state.status,
            state.failures,
            state.successes,
            self.silent_since,
        )

    @property
    def wants_confirming(self) -> bool:
        return (
            self.failed_last
            and self.locked.type not in UNCONFIRMED
            and self.locked.confirm_interval_seconds > 0
            and 0 < self.state.failures < self.locked.failure_threshold
        )

    def standing(self) -> CachedState:
        row = self.locked
        quiet = row.type == PUSH and self.last_heartbeat is not None and not self.silent_since
        return CachedState(
            version=row.version + (1 if self.is_changed else 0),
            status=self.state.status,
            failures=self.state.failures,
            successes=self.state.successes,
            failure_threshold=row.failure_threshold,
            monitor_uid=row.uid,
            project_uid=row.project_uid,
            project=row.project,
            heard_at=self.last_heartbeat if quiet else None,
            terms=tuple(self.promise.terms) if self.promise else (),
        )


async def begin_courses(tx: Tx, keys: Sequence[MonitorKey]) -> dict[MonitorKey, StateUpdate]:
    """Locks the states and reads the data to fold with. Deleted monitors are omitted."""
    locked = await results.lock_states(tx, keys)
    newest = await results.select_newest(tx, sorted(locked))
    promises = await load_promises(tx, locked, newest)
    courses = {}
    for key, row in locked.items():
        instant = newest[key][0] if key in newest else None
        promise = promises.get(key)
        silence = promise.silence if promise else None
        courses[key] = StateUpdate(
            locked=row,
            newest=instant,
            promise=promise,
            state=MonitorState(MonitorStatus(row.status), row.failures, row.since, row.successes),
            silent_since=row.silent_since,
            last_heartbeat=silence.since if silence else None,
        )
    return courses


async def write_courses(tx: Tx, courses: Mapping[MonitorKey, StateUpdate]) -> list[StatusChange]:
    """Writes the changed states, wakes parents and returns the status changes."""
    changed = [course for course in courses.values() if course.is_changed]
    await results.update_states(tx, [_write(course) for course in changed])
    flips = [flip for course in courses.values() for flip in course.flips]
    await results.insert_status_changes(tx, flips)
    await composite_wakeups.wake_parents(tx, flips)
    await _confirm(tx, [course for course in courses.values() if course.wants_confirming])
    return flips


def _write(course: StateUpdate) -> StateWrite:
    row, state = course.locked, course.state
    since = state.since if state.since is not None else row.since
    return StateWrite(
        row.org,
        row.monitor,
        state.status,
        state.failures,
        state.successes,
        since,
        course.silent_since,
    )


async def _confirm(tx: Tx, courses: Sequence[StateUpdate]) -> None:
    """Schedules a confirming run after a failure below the threshold, if the next run is later."""
    keys = [MonitorKey((c.locked.org, c.locked.monitor)) for c in courses]
    terms = await schedules.select_terms_of(tx, keys) if keys else {}
    for key, course in zip(keys, courses, strict=True):
        row = course.locked
        # The newest term: an extra run at creation or resume can precede the start of its term.
        term = terms[key][-1]
        if not term.enabled:
            continue
        interval_us = row.confirm_interval_seconds * SECOND
        failures, threshold = course.state.failures, row.failure_threshold
        at = confirm_at(tx.now, failures, threshold, interval_us, term)
        if at is not None and row.type == COMPOSITE:
            await composite_wakeups.wake_composites(tx, key, at)
        elif at is not None:
            until = Instant(at + CONFIRM_CLAIM_US)
            await queues.add_job(tx, uuid7(), *key, row.shard, "confirm", at, until)
