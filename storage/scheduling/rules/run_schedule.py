"""When a monitor's runs are due: every window of every term, none twice, none left out.

A term is what an edit of the schedule began: it governs the due instants in (from, next from].
The left end is open because a reservation moves a cursor over (reserved_through, new_through], and
a term begins at that cursor: what was reserved keeps the terms under which it was reserved.

Due instants are `anchor + k × interval`. They are whole milliseconds, since they travel as RFC 3339
text with milliseconds and must come back as the same window.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from itertools import pairwise
from uuid import UUID

from ...core.instant import LATEST, MILLISECOND, SECOND, Instant

# How long after its last chance a result may still arrive before its window is sealed.
LATE_ARRIVAL_US = 120 * SECOND
# However long the interval, a run that starts later than this says nothing about its due instant.
CLAIMABLE_US = 120 * SECOND
CONFIRM_LEAST_US = 5 * SECOND


class ResultMode(StrEnum):
    """How a monitor comes by its results, which decides when its windows are settled."""

    PROBE = "probe"
    COMPOSITE = "composite"
    PUSH = "push"


@dataclass(frozen=True, slots=True)
class ScheduleTerm:
    """One line of a monitor's schedule history; `shard` is the share of work that reserves it.

    Terms are kept in the order in which they were written. Of two with the same `from_` the later
    one governs, and the earlier one governs nothing.
    """

    from_: Instant
    anchor: Instant
    interval_us: int
    timeout_us: int
    grace_us: int = 0
    enabled: bool = True
    shard: int = 0


@dataclass(frozen=True, slots=True)
class RunWindow:
    """A run that is due, and the term that made it so."""

    due: Instant
    term: ScheduleTerm


def anchor_for(monitor_id: UUID, interval_us: int, around: Instant) -> Instant:
    """The latest instant not after `around` on the grid that this id has at this interval.

    The grid's offset is a hash of the id, so monitors spread evenly over the interval, and going
    back to an interval goes back to its grid.
    """
    offset_us = int.from_bytes(sha256(monitor_id.bytes).digest()[:8]) * MILLISECOND
    return Instant(around - (around - offset_us) % interval_us)


def spans(terms: Sequence[ScheduleTerm]) -> Iterator[tuple[ScheduleTerm, Instant]]:
    """Each term with the last instant that it governs; the newest governs for good."""
    for term, following in pairwise(terms):
        yield term, following.from_
    if terms:
        yield terms[-1], LATEST


def windows(terms: Sequence[ScheduleTerm], after: Instant, through: Instant) -> list[RunWindow]:
    """Every window due in (after, through], in order, each with the term that governs it."""
    found: list[RunWindow] = []
    for term, end in spans(terms):
        due = next_due(term, after)
        while due <= end and due <= through:
            found.append(RunWindow(due, term))
            due = Instant(due + term.interval_us)
    return found


def window_at(terms: Sequence[ScheduleTerm], due: Instant) -> RunWindow | None:
    """The window due exactly then; None where the terms then in force made none."""
    found = windows(terms, Instant(due - 1), due)
    return found[0] if found else None


def next_window(terms: Sequence[ScheduleTerm], after: Instant) -> RunWindow | None:
    """The first window due after an instant; None only without terms."""
    for term, end in spans(terms):
        if end > after:
            due = next_due(term, after)
            if due <= end:
                return RunWindow(due, term)
    return None


def next_due(term: ScheduleTerm, after: Instant) -> Instant:
    """The first instant of the term's grid after both `after` and the term's own beginning."""
    start = max(after, term.from_)
    return Instant(start + term.interval_us - (start - term.anchor) % term.interval_us)


def term_at(terms: Sequence[ScheduleTerm], instant: Instant) -> ScheduleTerm | None:
    """The term that governs an instant; None before the first one."""
    for term in reversed(terms):
        if term.from_ < instant:
            return term
    return None


def claimable_until(due: Instant, interval_us: int) -> Instant:
    """Until when a worker may still take the window up; at this instant it no longer may."""
    return Instant(due + min(interval_us, CLAIMABLE_US))


def sealing_at(window: RunWindow, manner: ResultMode) -> Instant:
    """When a window without a result is called missed."""
    return Instant(result_expected_by(window, manner) + LATE_ARRIVAL_US)


def result_expected_by(window: RunWindow, manner: ResultMode) -> Instant:
    """The end of what the run itself may take; for a push, of the promise that it checks."""
    term = window.term
    allowed_us = {
        ResultMode.PROBE: term.timeout_us,
        ResultMode.COMPOSITE: 0,
        ResultMode.PUSH: term.interval_us + term.grace_us,
    }[manner]
    return Instant(window.due + allowed_us)


def confirm_at(
    known_at: Instant,
    failures: int,
    failure_threshold: int,
    confirm_interval_us: int,
    term: ScheduleTerm,
) -> Instant | None:
    """When to look again after a failure that does not yet make DOWN; None to wait for the grid.

    `known_at` is when the failure was known and `failures` the count that includes it. An interval
    of 0 turns confirming off; any other is held between 5 s and the monitor's interval.
    """
    if not confirm_interval_us or not 0 < failures < failure_threshold:
        return None
    wait_us = max(min(confirm_interval_us, term.interval_us), CONFIRM_LEAST_US)
    at = Instant(known_at + wait_us)
    return at if at < next_due(term, known_at) else None
