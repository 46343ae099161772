"""Stores results that may change a state, and folds them, under the lock of each state.

The order is the promise: fences first (no sealing passes us), then the states FOR UPDATE (no other
writer folds), then, in a statement of its own, the newest stored result. Only what is newer is
folded; what the fence has passed is history: it is stored and its figures are made again.
"""

from collections.abc import Mapping, Sequence

import msgspec

from ...core.instant import Instant
from ...core.key import Key
from ...engine.pools import Tx
from ...monitors.rules.monitor_state import Flip
from ...scheduling.rules.expected_run import verdict_of_result
from ..rules.incoming_result import Arrival, Fate, Recorded, Source, Standing
from ..rules.push_deadline import newly_covered
from ..tables import results
from .push_expectations import missed_arrival
from .request_repairs import ask_restatements, passed
from .state_update import Course, begin_courses, write_courses

# How often an instant that is taken is moved on by a microsecond.
MOST_MOVES = 1_000


async def record_results(
    tx: Tx, arrivals: Sequence[Arrival], *, again: bool = False, patient: bool = True
) -> tuple[list[Recorded], list[Flip]]:
    """One answer for each arrival, in their order, and the changes of status they made.

    `again` says that an earlier try may have been committed. A `patient` caller is told UNDECIDED
    where a push comes after a deadline that cannot be judged yet, and brings it again.
    """
    fences = await results.share_fences(tx, sorted({a.shard for a in arrivals}))
    courses = await begin_courses(tx, sorted({a.key for a in arrivals}))
    fates = [_fate(a, courses.get(a.key), fences, patient=patient) for a in arrivals]
    arrivals = [_with_windows(a, courses.get(a.key)) for a in arrivals]
    live = [n for n, fate in enumerate(fates) if fate in (Fate.LIVE, Fate.HISTORY)]
    await _take_windows(tx, arrivals, live, fates)
    stored = [n for n in live if fates[n] is not Fate.DUPLICATE]
    silences = _silences_before(arrivals, stored, fates, courses)
    moved = await _store(tx, [*silences, *(arrivals[n] for n in stored)], again=again)
    arrived = dict(zip(stored, moved[len(silences) :], strict=True))
    _fold(moved[: len(silences)], arrived, fates, courses)
    late = [a for n, a in arrived.items() if fates[n] is Fate.HISTORY]
    await ask_restatements(tx, [*late, *passed(moved[: len(silences)], fences)])
    flips = await write_courses(tx, courses)
    return [
        Recorded(fate, arrived.get(n, arrivals[n]).ts, _standing(courses.get(arrivals[n].key)))
        for n, fate in enumerate(fates)
    ], flips


def _standing(course: Course | None) -> Standing | None:
    return course.standing() if course else None


def _fate(
    arrival: Arrival,
    course: Course | None,
    fences: Mapping[int, Instant],
    *,
    patient: bool,
) -> Fate:
    if course is None or arrival.shard not in fences:
        return Fate.IGNORED
    if arrival.is_outdated(course.locked.revision, course.locked.updated_at):
        return Fate.OUTDATED
    if arrival.source is Source.PUSH and not course.locked.enabled:
        return Fate.PAUSED
    if arrival.source is Source.BACKFILL or arrival.is_history(fences[arrival.shard]):
        return Fate.HISTORY if arrival.is_history(fences[arrival.shard]) else Fate.LIVE
    promise = course.promise
    if patient and promise is not None and promise.is_undecided(Instant(arrival.ts - 1)):
        return Fate.UNDECIDED
    return Fate.LIVE


def _with_windows(arrival: Arrival, course: Course | None) -> Arrival:
    """A push answers the windows it falls into, by the terms as they are under the lock."""
    if course is None or course.promise is None or arrival.source is not Source.PUSH:
        return arrival
    silence = course.promise.silence
    previous = silence.since if silence is not None and silence.since < arrival.ts else None
    covered = newly_covered(course.promise.terms, arrival.ts, previous)
    return msgspec.structs.replace(arrival, dues=tuple(window.due for window in covered))


async def _take_windows(
    tx: Tx, arrivals: Sequence[Arrival], live: Sequence[int], fates: list[Fate]
) -> None:
    """Gives each window its row; a probe's result whose window is taken is a duplicate."""
    wanted: dict[tuple[int, int, Instant], tuple[str, str | None]] = {}
    claimed: dict[int, tuple[int, int, Instant]] = {}
    for n in live:
        arrival = arrivals[n]
        verdict = verdict_of_result(
            arrival.covered_until,
            tx.now,
            history=fates[n] is Fate.HISTORY,
            backfill=arrival.source is Source.BACKFILL,
        )
        for due in arrival.dues:
            window = (*arrival.key, due)
            if window in wanted:
                continue
            wanted[window] = ("withheld", arrival.withheld) if arrival.withheld else (verdict, None)
            if arrival.windowed:
                claimed[n] = window
    taken = await results.settle_windows(tx, [(*w, *v) for w, v in wanted.items()])
    for n in live:
        if arrivals[n].windowed and claimed.get(n) not in taken:
            fates[n] = Fate.DUPLICATE


def _silences_before(
    arrivals: Sequence[Arrival],
    stored: Sequence[int],
    fates: Sequence[Fate],
    courses: Mapping[Key, Course],
) -> list[Arrival]:
    """The deadlines that passed before the first live heartbeat of each push in this batch."""
    first: dict[Key, Instant] = {}
    for n in stored:
        arrival = arrivals[n]
        if fates[n] is Fate.LIVE and arrival.source is Source.PUSH:
            first[arrival.key] = min(first.get(arrival.key, arrival.ts), arrival.ts)
    found: list[Arrival] = []
    for key, instant in sorted(first.items()):
        course = courses[key]
        if course.promise is not None:
            passed = course.promise.missed(Instant(instant - 1))
            found += [missed_arrival(course.locked, deadline) for deadline in passed]
    return found


async def _store(tx: Tx, arrivals: Sequence[Arrival], *, again: bool) -> list[Arrival]:
    """Stores each; one whose instant is taken moves on by a microsecond and is never dropped."""
    placed = list(arrivals)
    waiting = list(range(len(placed)))
    for _ in range(MOST_MOVES):
        batch: dict[tuple[int, int, Instant], int] = {}
        for n in waiting:
            batch.setdefault((*placed[n].key, placed[n].ts), n)
        done = await results.insert_heartbeats(tx, [placed[n] for n in batch.values()])
        stored = {batch[key] for key in done}
        waiting = [n for n in waiting if n not in stored]
        if again:
            waiting = [n for n in waiting if not await _is_ours(tx, placed[n])]
        if not waiting:
            return placed
        for n in waiting:
            placed[n] = msgspec.structs.replace(placed[n], ts=Instant(placed[n].ts + 1))
    raise AssertionError(f"{MOST_MOVES} results of one monitor within {MOST_MOVES} µs")


async def _is_ours(tx: Tx, arrival: Arrival) -> bool:
    """Whether an earlier try stored it: not where it has just taken its window."""
    return not arrival.windowed and await results.is_stored(tx, arrival)


def _fold(
    silences: Sequence[Arrival],
    arrived: Mapping[int, Arrival],
    fates: Sequence[Fate],
    courses: Mapping[Key, Course],
) -> None:
    live = [arrival for n, arrival in arrived.items() if fates[n] is Fate.LIVE]
    for arrival in sorted([*silences, *live], key=lambda a: a.ts):
        courses[arrival.key].take(arrival)
