"""Deadlines of push monitors, and what a missing heartbeat means.

A push monitor expects a heartbeat within interval + grace of the last one. At that deadline one
failure (`push_missed`) is folded, and one more per interval while no heartbeat arrives. If the
server did not listen throughout, the result is unknown: the deadline moves to one full period after
listening resumed. It never moves past the instant at which two periods were listened to, so that a
daemon that restarts daily still reports a missed daily job.

With a cron expression, a heartbeat is expected in [due, due + grace] of each due instant after the
last heartbeat. The deadline is the end of this period. If the server did not listen throughout it,
the next due instant decides, or the first deadline by which two of the longest periods were
listened to.

A resume, the end of a maintenance and a change of interval or grace restart the period. No deadline
applies in a pause, in maintenance, or before the first heartbeat.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...core.instant import EARLIEST, LATEST, Instant
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
    deadline_after_missed,
    deadline_of,
    promised,
    result_expected_by,
    spans,
    term_at,
    windows,
)


@dataclass(frozen=True, slots=True)
class ExpectationSpan:
    """Span with an unbroken expectation under one promise. It owns the deadlines in (begin, end).

    With a cron expression, the due instants after `due_after` count.
    """

    begin: Instant
    end: Instant
    term: ScheduleTerm
    due_after: Instant

    @property
    def promise_us(self) -> int:
        return self.term.longest_us + self.term.grace_us


@dataclass(frozen=True, slots=True)
class PushGap:
    """Time without a push: the last heartbeat and the last `push_missed` after it, if any."""

    since: Instant
    missed: Instant | None = None


def missed_deadlines(
    silence: PushGap,
    terms: Sequence[ScheduleTerm],
    maintenance: Sequence[TimeSpan],
    heard: Sequence[TimeSpan],
    through: Instant,
) -> list[Instant]:
    """Returns the instants of unwritten `push_missed` failures due by `through`, in order.

    `heard` is from `presence.listened`, and `through` must not exceed `presence.judged_through`.
    Before a heartbeat is folded, call this with `through` one microsecond before it: a heartbeat
    exactly at its deadline is in time.
    """
    found: list[Instant] = []
    for stretch in stretches(silence.since, terms, maintenance):
        if stretch.begin > through:
            break
        due = _first_after(silence, stretch, heard)
        while due is not None and due <= through and due < stretch.end:
            found.append(due)
            due = _deadline_after(due, stretch, heard)
    return found


def next_deadline(
    silence: PushGap,
    terms: Sequence[ScheduleTerm],
    maintenance: Sequence[TimeSpan],
    heard: Sequence[TimeSpan],
) -> Instant | None:
    """Returns the next deadline if no push arrives and listening goes on, None without one."""
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
    """Yields the expectations after a heartbeat, split at pauses, maintenance and edits."""
    for term, begin, end in _promises(terms):
        if not term.enabled or end <= since:
            continue
        start = max(begin, since)
        # A due instant before the first term is no window.
        due_after = max(start, term.from_)
        index = bisect_right(maintenance, start, key=lambda span: span.until)
        for span in maintenance[index:]:
            if span.from_ >= end:
                break
            if start < span.from_:
                yield ExpectationSpan(start, span.from_, term, due_after)
            if span.until > start:
                # A window that is due when the maintenance ends is not in it.
                start, due_after = span.until, max(Instant(span.until - 1), term.from_)
        if start < end:
            yield ExpectationSpan(start, end, term, due_after)


def _promises(terms: Sequence[ScheduleTerm]) -> Iterator[tuple[ScheduleTerm, Instant, Instant]]:
    """Yields (term, begin, end) per expectation. Other edits do not restart it.

    The first one has no begin: it is the first heartbeat that begins the wait, and one can arrive
    before the first term does.
    """
    current: tuple[ScheduleTerm, Instant, Instant] | None = None
    for term, end in spans(terms):
        if end <= term.from_:
            continue
        if current is not None and promised(current[0]) == promised(term):
            current = (current[0], current[1], end)
            continue
        if current is not None:
            yield current
        current = (term, EARLIEST if current is None else term.from_, end)
    if current is not None:
        yield current


def _first_after(
    silence: PushGap, stretch: ExpectationSpan, heard: Sequence[TimeSpan]
) -> Instant | None:
    """Returns the first unwritten deadline of a span."""
    if silence.missed is not None and silence.missed > stretch.begin:
        return _deadline_after(silence.missed, stretch, heard)
    if stretch.term.schedule:
        return _scheduled_deadline(stretch.begin, stretch.due_after, stretch, heard)
    return _deadline(stretch.begin, stretch.promise_us, stretch, heard)


def _deadline_after(
    missed: Instant, stretch: ExpectationSpan, heard: Sequence[TimeSpan]
) -> Instant | None:
    """Returns the deadline that follows a missed one in the same silence."""
    term = stretch.term
    if not term.schedule:
        return _deadline(missed, term.interval_us, stretch, heard)
    due_after = max(Instant(missed - term.grace_us), stretch.due_after)
    return _scheduled_deadline(missed, due_after, stretch, heard)


def _scheduled_deadline(
    start: Instant, due_after: Instant, stretch: ExpectationSpan, heard: Sequence[TimeSpan]
) -> Instant | None:
    """Returns the first deadline of a due instant after `due_after` that can be judged.

    The silence is counted from `start`. Returns None if it is not yet listened for.
    """
    cron = stretch.term.cron
    assert cron is not None, "only terms with a schedule come here"
    due = due_after
    while heard and due <= heard[-1].until:
        due = Instant(cron.next_after(due))
        deadline = Instant(due + stretch.term.grace_us)
        if is_wholly_listened(heard, due, deadline):
            return deadline
        is_heard = is_wholly_listened(heard, deadline, deadline)
        if is_heard and _listened_us(heard, start, deadline) >= 2 * stretch.promise_us:
            return deadline
    return None


def _listened_us(heard: Sequence[TimeSpan], from_: Instant, until: Instant) -> int:
    return sum(max(min(span.until, until) - max(span.from_, from_), 0) for span in heard)


def _deadline(
    start: Instant, wait_us: int, stretch: ExpectationSpan, heard: Sequence[TimeSpan]
) -> Instant | None:
    """Returns when silence after `start` becomes a failure, None if not yet listened for.

    A deadline after a failure is judged like the first one, from that failure on. Each requires
    that the server listened for it.
    """
    due = Instant(start + wait_us)
    left_us = 2 * stretch.promise_us
    index = max(bisect_right(heard, start, key=lambda span: span.from_) - 1, 0)
    at = start
    for span in heard[index:]:
        if span.until < start:
            continue
        if span.from_ > at:
            # Listening was interrupted before the deadline: the wait restarts when it resumes.
            due = Instant(span.from_ + stretch.promise_us)
        at = max(span.from_, start)
        found = min(due, Instant(at + left_us))
        if found <= span.until:
            return found
        left_us -= span.until - at
        at = span.until
    return None


def fresh_until(instant: Instant, terms: Sequence[ScheduleTerm]) -> Instant:
    """Returns the end of freshness of a heartbeat: its deadline under the current terms.

    A later edit of interval or grace moves the deadline and with it the freshness. A pause or
    maintenance ends the freshness separately, see `sli`. Time without listening does not extend it.
    """
    until = instant
    for term, begin, _ in _promises(terms):
        if begin <= instant:
            # The first expectation can begin before its term.
            until = deadline_of(max(instant, term.from_) if term.schedule else instant, term)
        elif begin <= until and term.enabled:
            until = deadline_of(begin, term)
    return until


def missed_hold_until(instant: Instant, terms: Sequence[ScheduleTerm]) -> Instant:
    """Returns the end of freshness of a `push_missed`: the next deadline."""
    term = term_at(terms, instant)
    return instant if term is None else deadline_after_missed(instant, term)


def newly_covered(
    terms: Sequence[ScheduleTerm], heartbeat: Instant, previous: Instant | None
) -> list[RunWindow]:
    """Returns enabled windows that this heartbeat covers and the previous one did not.

    A heartbeat in [due, due + interval + grace] covers a window, both ends included; with a cron
    expression, one in [due, due + grace].
    """
    furthest_us = max((term.covering_us for term in terms), default=0)
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
    """Returns the verdict of a window that is open when it is sealed.

    `last_heartbeat` is the newest one up to the window's end, None without one. One within the
    window covers it, even if its transaction did not settle the window. A window in which the
    expectation was interrupted or restarted is withheld, because its heartbeat was no longer
    expected. Invariant: each no_heartbeat has a `push_missed` in the same silence.
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
    # An edit restarted the expectation: the window waits for its first heartbeat.
    return WithheldReason.AWAITING_FIRST if begun else None
