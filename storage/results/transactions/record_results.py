"""Recording of results that may change a state, under the lock of each state.

Locks:
    First the fences, so that no sealing passes; then the states FOR UPDATE, so that no other writer
    folds. A separate statement then reads the newest stored result. Only newer results are folded.
    Results before the fence are history: they are stored and their figures are repaired. A missed
    deadline and an overrun are also folded, because they can be found after their time was sealed.
"""

from collections.abc import Mapping, Sequence

import msgspec

from ...core.instant import Instant
from ...core.key import MonitorKey
from ...engine.pools import Tx
from ...monitors.rules.monitor_state import StatusChange
from ...scheduling.rules.expected_run import verdict_of_result
from ..rules.incoming_result import (
    CachedState,
    IncomingResult,
    ResultSource,
    StoreOutcome,
    StoreResult,
)
from ..rules.push_deadline import newly_covered
from ..rules.push_run import PUSH_OVERRUN
from ..tables import results
from .push_expectations import missed_arrival
from .request_repairs import passed, request_repairs
from .result_placer import ResultPlacer
from .state_update import StateUpdate, begin_courses, write_courses

# Number of times that a taken instant is moved by a microsecond.
MOST_MOVES = 1_000


async def record_results(
    tx: Tx, arrivals: Sequence[IncomingResult], *, again: bool = False, patient: bool = True
) -> tuple[list[StoreResult], list[StatusChange]]:
    """Returns one outcome per result, in order, and the status changes.

    `again` states that an earlier attempt may have been committed. With `patient`, a push after a
    deadline that cannot be judged yet gets UNDECIDED, and the caller retries.
    """
    fences = await results.lock_shared_fences(tx, sorted({a.shard for a in arrivals}))
    courses = await begin_courses(tx, sorted({a.key for a in arrivals}))
    fates = [_fate(a, courses.get(a.key), fences, patient=patient) for a in arrivals]
    arrivals = [_with_windows(a, courses.get(a.key)) for a in arrivals]
    live = [n for n, fate in enumerate(fates) if fate in (StoreOutcome.LIVE, StoreOutcome.HISTORY)]
    placer = ResultPlacer(tx, fences)
    await _settle_windows(placer, tx.now, arrivals, live, fates, fences)
    stored = [n for n in live if fates[n] is not StoreOutcome.DUPLICATE]
    silences = _silences_before(arrivals, stored, fates, courses)
    moved = await _store(tx, placer, [*silences, *(arrivals[n] for n in stored)], again=again)
    arrived = dict(zip(stored, moved[len(silences) :], strict=True))
    _fold(moved[: len(silences)], arrived, fates, courses)
    late = [a for n, a in arrived.items() if arrivals[n].is_history(fences[a.shard])]
    await request_repairs(tx, [*late, *passed(moved[: len(silences)], fences)])
    flips = await write_courses(tx, courses)
    return [
        StoreResult(fate, arrived.get(n, arrivals[n]).ts, _standing(courses.get(arrivals[n].key)))
        for n, fate in enumerate(fates)
    ], flips


def _standing(course: StateUpdate | None) -> CachedState | None:
    return course.standing() if course else None


def _fate(
    arrival: IncomingResult,
    course: StateUpdate | None,
    fences: Mapping[int, Instant],
    *,
    patient: bool,
) -> StoreOutcome:
    if course is None or arrival.shard not in fences:
        return StoreOutcome.IGNORED
    if arrival.is_outdated(course.locked.revision, course.locked.updated_at):
        return StoreOutcome.OUTDATED
    if arrival.source is ResultSource.PUSH and not course.locked.enabled:
        return StoreOutcome.PAUSED
    if arrival.is_history(fences[arrival.shard]) and not _is_overrun(arrival):
        return StoreOutcome.HISTORY
    if arrival.source is ResultSource.BACKFILL:
        return StoreOutcome.LIVE
    promise = course.promise
    if patient and promise is not None and promise.is_undecided(Instant(arrival.came_at - 1)):
        return StoreOutcome.UNDECIDED
    return StoreOutcome.LIVE


def _is_overrun(arrival: IncomingResult) -> bool:
    return arrival.source is ResultSource.PUSH and arrival.msg == PUSH_OVERRUN


def _with_windows(arrival: IncomingResult, course: StateUpdate | None) -> IncomingResult:
    """Sets the windows that a push covers, by the terms as read under the lock."""
    if course is None or course.promise is None or arrival.source is not ResultSource.PUSH:
        return arrival
    silence = course.promise.silence
    previous = silence.since if silence is not None and silence.since < arrival.ts else None
    covered = {
        window.due
        for instant in {arrival.came_at, arrival.ts}
        for window in newly_covered(course.promise.terms, instant, previous)
    }
    return msgspec.structs.replace(arrival, dues=tuple(sorted(covered)))


async def _settle_windows(
    placer: ResultPlacer,
    now: Instant,
    arrivals: Sequence[IncomingResult],
    live: Sequence[int],
    fates: list[StoreOutcome],
    fences: Mapping[int, Instant],
) -> None:
    """Settles the windows. A probe result whose window is already settled is a duplicate."""
    wanted: dict[tuple[int, int, Instant], tuple[str, str | None]] = {}
    claimed: dict[int, tuple[int, int, Instant]] = {}
    for n in live:
        arrival = arrivals[n]
        verdict = verdict_of_result(
            arrival.covered_until,
            now,
            history=arrival.is_history(fences[arrival.shard]),
            backfill=arrival.source is ResultSource.BACKFILL,
        )
        for due in arrival.dues:
            window = (*arrival.key, due)
            if window in wanted:
                continue
            wanted[window] = ("withheld", arrival.withheld) if arrival.withheld else (verdict, None)
            if arrival.windowed:
                claimed[n] = window
    taken = await placer.settle([(*w, *v) for w, v in wanted.items()])
    for n in live:
        if arrivals[n].windowed and claimed.get(n) not in taken:
            fates[n] = StoreOutcome.DUPLICATE


def _silences_before(
    arrivals: Sequence[IncomingResult],
    stored: Sequence[int],
    fates: Sequence[StoreOutcome],
    courses: Mapping[MonitorKey, StateUpdate],
) -> list[IncomingResult]:
    """Returns the deadlines missed before the first live heartbeat of each push monitor."""
    first: dict[MonitorKey, Instant] = {}
    for n in stored:
        arrival = arrivals[n]
        if fates[n] is StoreOutcome.LIVE and arrival.source is ResultSource.PUSH:
            came_at = arrival.came_at
            first[arrival.key] = min(first.get(arrival.key, came_at), came_at)
    found: list[IncomingResult] = []
    for key, instant in sorted(first.items()):
        course = courses[key]
        if course.promise is not None:
            passed = course.promise.missed(Instant(instant - 1))
            found += [missed_arrival(course.locked, deadline) for deadline in passed]
    return found


async def _store(
    tx: Tx, placer: ResultPlacer, arrivals: Sequence[IncomingResult], *, again: bool
) -> list[IncomingResult]:
    """Stores each result. A result whose instant is taken moves by 1 µs and is never dropped."""
    placed = list(arrivals)
    waiting = list(range(len(placed)))
    for _ in range(MOST_MOVES):
        batch: dict[tuple[int, int, Instant], int] = {}
        for n in waiting:
            batch.setdefault((*placed[n].key, placed[n].ts), n)
        done = await placer.insert([placed[n] for n in batch.values()])
        stored = {batch[key] for key in done}
        waiting = [n for n in waiting if n not in stored]
        if again:
            waiting = [n for n in waiting if not await _is_ours(tx, placed[n])]
        if not waiting:
            return placed
        for n in waiting:
            placed[n] = msgspec.structs.replace(placed[n], ts=Instant(placed[n].ts + 1))
    raise AssertionError(f"{MOST_MOVES} results of one monitor within {MOST_MOVES} µs")


async def _is_ours(tx: Tx, arrival: IncomingResult) -> bool:
    """Returns whether an earlier attempt stored it. False if it has just claimed its window."""
    return not arrival.windowed and await results.is_stored(tx, arrival)


def _fold(
    silences: Sequence[IncomingResult],
    arrived: Mapping[int, IncomingResult],
    fates: Sequence[StoreOutcome],
    courses: Mapping[MonitorKey, StateUpdate],
) -> None:
    live = [arrival for n, arrival in arrived.items() if fates[n] is StoreOutcome.LIVE]
    for arrival in sorted([*silences, *live], key=lambda a: a.ts):
        courses[arrival.key].take(arrival)
    for n, arrival in arrived.items():
        if fates[n] is StoreOutcome.HISTORY:
            courses[arrival.key].is_passed_over = True
