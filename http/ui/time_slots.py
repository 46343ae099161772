"""Conversion of results to the slots of a strip: equal slots, each with one state."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from ...storage.core.instant import Instant
from ...storage.results.queries.console_results import ResultSlot, ResultTimeline
from ...storage.scheduling.rules.maintenance_window import is_in_maintenance
from ...storage.scheduling.rules.run_schedule import spans, term_at
from .plots.heartbeat_strip import HeartbeatSlot


@dataclass(frozen=True, slots=True)
class Axis:
    """Axis of `many` slots of `step_us` from an instant."""

    from_at: Instant
    step_us: int
    many: int

    @property
    def until(self) -> Instant:
        return self.start(self.many)

    def start(self, slot: int) -> Instant:
        return Instant(self.from_at + slot * self.step_us)

    def slot(self, at: Instant) -> int:
        return (at - self.from_at) // self.step_us


def beats(
    course: ResultTimeline, axis: Axis, now: Instant, *, held_us: int, patience_us: int = 0
) -> list[HeartbeatSlot]:
    """Returns the state of each slot.

    A slot without a result shows the last one while it is fresh (`held_us`). A slot that began less
    than `patience_us` ago can still get a result.
    """
    taken = {axis.slot(row.start): row for row in course.taken}
    breaks = _breaks(course)
    last = course.before
    found = []
    for slot in range(axis.many):
        row = taken.get(slot)
        found.append(_beat(course, axis, slot, row, now, last, breaks, held_us, patience_us))
        if row is not None:
            last = row.last_at, row.last_up
    return found


def _beat(
    course: ResultTimeline,
    axis: Axis,
    slot: int,
    row: ResultSlot | None,
    now: Instant,
    last: tuple[Instant, bool] | None,
    breaks: Sequence[Instant],
    held_us: int,
    patience_us: int,
) -> HeartbeatSlot:
    start, end = axis.start(slot), min(axis.start(slot + 1), now)
    if start >= now:
        return HeartbeatSlot.AWAY
    middle = Instant((start + end) // 2)
    if is_in_maintenance(middle, course.maintenance):
        return HeartbeatSlot.MAINTENANCE
    if row is not None:
        return HeartbeatSlot.FAILED if row.failed else HeartbeatSlot.UP
    term = term_at(course.terms, middle)
    if term is None:
        return HeartbeatSlot.BEFORE if course.terms else HeartbeatSlot.AWAY
    if not term.enabled:
        return HeartbeatSlot.PAUSED
    if last is not None and middle < last[0] + held_us:
        broken = bisect_right(breaks, middle) - bisect_right(breaks, last[0])
        if not broken:
            return HeartbeatSlot.UP if last[1] else HeartbeatSlot.FAILED
    return HeartbeatSlot.AWAY if start + patience_us > now else HeartbeatSlot.NONE


def _breaks(course: ResultTimeline) -> list[Instant]:
    """Returns the instants at which earlier results expire: starts of pauses and maintenance."""
    pauses = [term.from_ for term, _ in spans(course.terms) if not term.enabled]
    return sorted([*pauses, *(span.from_ for span in course.maintenance)])
