"""Recording of missed pushes: folds a failure per missed deadline once it can be judged."""

from collections.abc import Sequence
from dataclasses import dataclass

from ...core.instant import Instant
from ...core.key import MonitorKey
from ...engine.pools import Tx
from ...monitors.rules.monitor_state import StatusChange
from ..rules.incoming_result import IncomingResult
from ..tables import results
from .push_expectations import PushExpectation, missed_arrival
from .request_repairs import passed, request_repairs
from .result_placer import ResultPlacer
from .state_update import StateUpdate, begin_courses, write_courses


@dataclass(frozen=True, slots=True)
class MissedPushCheck:
    """Result of one check of a push monitor.

    `look_again_at` is the next deadline if no push arrives, None without one. `undecided` states
    that a deadline has passed that cannot be judged yet.
    """

    look_again_at: Instant | None
    undecided: bool


async def record_missed_pushes(
    tx: Tx, keys: Sequence[MonitorKey], shards: Sequence[int]
) -> tuple[
    dict[MonitorKey, MissedPushCheck], list[tuple[IncomingResult, StateUpdate]], list[StatusChange]
]:
    """Returns the check of each monitor, the stored failures, and the status changes."""
    fences = await results.lock_shared_fences(tx, sorted(shards))
    courses = await begin_courses(tx, keys)
    due = [
        (missed_arrival(course.locked, deadline), course)
        for course in courses.values()
        if course.promise is not None
        for deadline in course.promise.missed(tx.now)
    ]
    # A heartbeat exactly at its deadline is in time, so its instant is skipped.
    stored = await ResultPlacer(tx, fences).insert([arrival for arrival, _ in due])
    found = [pair for pair in due if (*pair[0].key, pair[0].ts) in stored]
    for arrival, course in sorted(found, key=lambda pair: pair[0].ts):
        course.take(arrival)
    await request_repairs(tx, passed((arrival for arrival, _ in found), fences))
    last = {arrival.key: arrival.ts for arrival, _ in due}
    judged = {
        key: _decided(course.promise, last.get(key), tx.now)
        for key, course in courses.items()
        if course.promise is not None
    }
    return judged, found, await write_courses(tx, courses)


def _decided(promise: PushExpectation, missed: Instant | None, now: Instant) -> MissedPushCheck:
    if missed is not None:
        promise = promise.after(missed)
    return MissedPushCheck(promise.next_deadline(), promise.is_undecided(now))
