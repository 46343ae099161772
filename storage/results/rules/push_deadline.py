"""The promise of a push monitor, and what silence says about it.

The promise is a heartbeat within interval + grace of the last one. At that deadline one failure
(`push_missed`) is folded, and one more each interval while the silence lasts. Where we did not
listen all the while, nothing is known: the deadline moves a whole promise behind the moment from
which we listened again. So that a daemon restarted daily still raises the alarm of a daily job, it
never moves past the instant at which two promises were listened to.

A resume, the end of a maintenance and a change of interval or grace begin the promise anew; in a
pause and in maintenance there is none, nor before the first heartbeat.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...core.instant import LATEST, Instant
from ...core.time_span import TimeSpan
from ...scheduling.rules.expected_run import (
    COVERED_LATE,
    MissedReason,
    VerdictWithReason,
    WithheldReason,
    missed,
    withheld,
)
from ...scheduling.rules.presence import is_wholly_listened
from ...scheduling.rules.run_schedule import (
    ResultMode,
    RunWindow,
    ScheduleTerm,
    result_expected_by,
    spans,
    term_at,
    windows,
)


@dataclass(frozen=True, slots=True)
class ExpectationSpan:
    """Time over which one promise runs unbroken: a deadline in (begin, end) is its own."""

    begin: Instant
    end: Instant
    interval_us: int
    grace_us: int

    @property
    def promise_us(self) -> int:
        return self.interval_us + self.grace_us


@dataclass(frozen=True, slots=True)
class PushGap:
    """Since when nothing came: the last heartbeat, and the last `push_missed` after it, if any."""

    since: Instant
    missed: Instant | None = None


def missed_deadlines(
    silence: PushGap,
    terms: Sequence[ScheduleTerm],
    maintenance: Sequence[TimeSpan],
    heard: Sequence[TimeSpan],
    through: Instant,
) -> list[Instant]:
    """The instants of every `push_missed` that is due by then and not yet written, in order.

    `heard` is from `presence.listened`, and `through` must not lie past `presence.judged_through`.
    To fold a heartbeat, ask first with `through` one microsecond before it: a heartbeat exactly at
    its deadline is in time.
    """
    found: list[Instant] = []
    for stretch in stretches(silence.since, terms, maintenance):
        if stretch.begin > through:
            break
        due = _first_after(silence, stretch, heard)
        while due is not None and due <= through and due < stretch.end:
            found.append(due)
            due = _deadline(due, stretch.interval_us, stretch, heard)
    return found


def next_deadline(
    silence: PushGap,
    terms: Sequence[ScheduleTerm],
    maintenance: Sequence[TimeSpan],
    heard: Sequence[TimeSpan],
) -> Instant | None:
    """When to look again if nothing comes and we go on listening; None without a promise."""
    if heard:
        heard = [*heard[:-1], TimeSpan(heard[-1].from_, LATEST)]
    for stretch in stretches(silence.since, terms, maintenance):
        due = _first_after(silence, stretch, heard)
        if due is not None and due < stretch.end:
            return due
    return None


def stretches(
    since: Instant, terms: Sequence[ScheduleTerm], maintenance: Sequence[TimeSpan]
) -> Iterator[ExpectationSpan]:
    """The promises that run after a heartbeat, cut where a pause, a maintenance or an edit does."""
    for term, begin, end in _promises(terms):
        if not term.enabled or end <= since:
            continue
        start = max(begin, since)
        index = bisect_right(maintenance, start, key=lambda span: span.until)
        for span in maintenance[index:]:
            if span.from_ >= end:
                break
            if start < span.from_:
                yield ExpectationSpan(start, span.from_, term.interval_us, term.grace_us)
            start = max(start, span.until)
        if start < end:
            yield ExpectationSpan(start, end, term.interval_us, term.grace_us)


def _promises(terms: Sequence[ScheduleTerm]) -> Iterator[tuple[ScheduleTerm, Instant, Instant]]:
    """(term, begin, end) of each promise: an edit of anything else does not begin it anew."""
    current: tuple[ScheduleTerm, Instant, Instant] | None = None
    for term, end in spans(terms):
        if end <= term.from_:
            continue
        if current is not None and _promised(current[0]) == _promised(term):
            current = (current[0], current[1], end)
            continue
        if current is not None:
            yield current
        current = (term, term.from_, end)
    if current is not None:
        yield current


def _promised(term: ScheduleTerm) -> tuple[bool, int, int]:
    return term.enabled, term.interval_us, term.grace_us


def _first_after(
    silence: PushGap, stretch: ExpectationSpan, heard: Sequence[TimeSpan]
) -> Instant | None:
    """The first deadline of a stretch that is not yet written."""
    if silence.missed is not None and silence.missed > stretch.begin:
        return _deadline(silence.missed, stretch.interval_us, stretch, heard)
    return _deadline(stretch.begin, stretch.promise_us, stretch, heard)


def _deadline(
    start: Instant, wait_us: int, stretch: ExpectationSpan, heard: Sequence[TimeSpan]
) -> Instant | None:
    """When silence after `start` becomes a failure; None where we have not listened for it yet.

    What follows a failure is judged like the first deadline, from that failure on: each says that
    we listened for it.
    """
    due = Instant(start + wait_us)
    left_us = 2 * stretch.promise_us
    index = max(bisect_right(heard, start, key=lambda span: span.from_) - 1, 0)
    at = start
    for span in heard[index:]:
        if span.until < start:
            continue
        if span.from_ > at:
            # Deaf in between, before the deadline: the wait begins where we listen again.
            due = Instant(span.from_ + stretch.promise_us)
        at = max(span.from_, start)
        found = min(due, Instant(at + left_us))
        if found <= span.until:
            return found
        left_us -= span.until - at
        at = span.until
    return None


def fresh_until(instant: Instant, terms: Sequence[ScheduleTerm]) -> Instant:
    """Until when a heartbeat speaks for its target: its deadline, by the terms in force then.

    An edit of interval or grace in between moves the deadline, and the hold with it. A pause or a
    maintenance ends the hold by itself, see `sli`. Our own deafness does not lengthen it.
    """
    until = instant
    for term, begin, _ in _promises(terms):
        if begin <= instant:
            until = Instant(instant + term.interval_us + term.grace_us)
        elif begin <= until and term.enabled:
            until = Instant(begin + term.interval_us + term.grace_us)
    return until


def missed_hold_until(instant: Instant, terms: Sequence[ScheduleTerm]) -> Instant:
    """A `push_missed` holds one interval."""
    term = term_at(terms, instant)
    return Instant(instant + (term.interval_us if term else 0))


def newly_covered(
    terms: Sequence[ScheduleTerm], heartbeat: Instant, previous: Instant | None
) -> list[RunWindow]:
    """The windows that a heartbeat covers and the one before it did not, paused ones left out.

    A window is covered by a heartbeat in [due, due + interval + grace], its ends included.
    """
    furthest_us = max((term.interval_us + term.grace_us for term in terms), default=0)
    after = heartbeat - furthest_us - 1
    if previous is not None:
        after = max(after, previous)
    return [
        window
        for window in windows(terms, Instant(after), heartbeat)
        if window.term.enabled and heartbeat <= result_expected_by(window, ResultMode.PUSH)
    ]


def verdict_of_gap(
    window: RunWindow,
    last_heartbeat: Instant | None,
    terms: Sequence[ScheduleTerm],
    maintenance: Sequence[TimeSpan],
    heard: Sequence[TimeSpan],
) -> VerdictWithReason:
    """What becomes of a grid window that stands open when it is sealed.

    `last_heartbeat` is the newest one up to the window's end; one within the window covers it,
    though whoever stored it did not know. A window in which the promise was
    interrupted or begun anew is withheld: what it would say was not promised any more. So
    no_heartbeat never stands without a `push_missed` in the same silence.
    """
    end = result_expected_by(window, ResultMode.PUSH)
    if not window.term.enabled:
        return withheld(WithheldReason.PAUSED)
    if last_heartbeat is None:
        in_maintenance = any(span.from_ <= end < span.until for span in maintenance)
        return withheld(
            WithheldReason.MAINTENANCE if in_maintenance else WithheldReason.AWAITING_FIRST
        )
    if last_heartbeat >= window.due:
        return COVERED_LATE
    interrupted = _interruption(window, end, terms, maintenance)
    if interrupted is not None:
        return withheld(interrupted)
    if not is_wholly_listened(heard, window.due, end):
        return missed(MissedReason.NOT_LISTENING)
    return missed(MissedReason.NO_HEARTBEAT)


def _interruption(
    window: RunWindow, end: Instant, terms: Sequence[ScheduleTerm], maintenance: Sequence[TimeSpan]
) -> WithheldReason | None:
    begun = [term for term, begin, _ in _promises(terms) if window.due <= begin <= end]
    if any(not term.enabled for term in begun):
        return WithheldReason.PAUSED
    if any(span.from_ <= end and span.until > window.due for span in maintenance):
        return WithheldReason.MAINTENANCE
    # An edit began the promise anew: the window waits for a first heartbeat under it.
    return WithheldReason.AWAITING_FIRST if begun else None
