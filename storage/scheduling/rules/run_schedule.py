"""Due instants of a monitor: each window of each term exactly once.

An edit of the schedule begins a term, which governs the due instants in (from, next from]. The left
end is open because a reservation moves a cursor over (reserved_through, new_through] and a term
begins at that cursor. Reserved windows keep their terms.

Due instants are `anchor + k × interval`, or those of a cron expression in a time zone (see
`probes/check/cron_schedule.py`). They are whole milliseconds, because RFC 3339 text with
milliseconds must parse to the same window.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from itertools import pairwise
from uuid import UUID

from ....probes.check.cron_schedule import CronSchedule, cron_schedule
from ...core.instant import LATEST, MILLISECOND, SECOND, Instant

# Time after the last possible end of a run in which its result can arrive before sealing.
LATE_ARRIVAL_US = 120 * SECOND
# A run that starts later than this does not measure its due instant, at any interval.
CLAIMABLE_US = 120 * SECOND
CONFIRM_LEAST_US = 5 * SECOND


class ResultMode(StrEnum):
    """Source of a monitor's results. It determines when windows are settled."""

    PROBE = "probe"
    COMPOSITE = "composite"
    PUSH = "push"


@dataclass(frozen=True, slots=True)
class ScheduleTerm:
    """Entry of a monitor's schedule history. `shard` reserves its windows.

    Terms are kept in write order. Of two terms with the same `from_` the later one governs. With a
    cron expression in `schedule`, `interval_us` is the shortest distance of its due instants, at
    most a day, and `anchor` has no meaning.
    """

    from_: Instant
    anchor: Instant
    interval_us: int
    timeout_us: int
    grace_us: int = 0
    enabled: bool = True
    shard: int = 0
    schedule: str = ""
    timezone: str = ""

    @property
    def cron(self) -> CronSchedule | None:
        return cron_schedule(self.schedule, self.timezone) if self.schedule else None

    @property
    def longest_us(self) -> int:
        """Longest distance of two due instants, by the local clock of a cron expression."""
        cron = self.cron
        return self.interval_us if cron is None else cron.longest_us

    @property
    def covering_us(self) -> int:
        """Time after a due instant in which a heartbeat covers its window."""
        return self.grace_us + (0 if self.schedule else self.interval_us)

    @property
    def patience_us(self) -> int:
        """Upper bound of the time from a heartbeat to its deadline."""
        cron = self.cron
        return self.grace_us + (self.interval_us if cron is None else cron.distance_most_us)


@dataclass(frozen=True, slots=True)
class RunWindow:
    """Due run with the term that scheduled it."""

    due: Instant
    term: ScheduleTerm


def longest_us(interval_seconds: int, schedule: str, timezone: str) -> int:
    """Returns the longest distance of due instants of a monitor with these settings."""
    if schedule:
        return cron_schedule(schedule, timezone).longest_us
    return interval_seconds * SECOND


def anchor_for(monitor_id: UUID, interval_us: int, around: Instant) -> Instant:
    """Returns the latest instant at or before `around` on the monitor's grid.

    The offset of the grid is a hash of the id. Monitors are therefore spread evenly over the
    interval, and a return to an earlier interval restores its grid.
    """
    offset_us = int.from_bytes(sha256(monitor_id.bytes).digest()[:8]) * MILLISECOND
    return Instant(around - (around - offset_us) % interval_us)


def spans(terms: Sequence[ScheduleTerm]) -> Iterator[tuple[ScheduleTerm, Instant]]:
    """Yields each term with the last instant that it governs. The newest one has no end."""
    for term, following in pairwise(terms):
        yield term, following.from_
    if terms:
        yield terms[-1], LATEST


def windows(terms: Sequence[ScheduleTerm], after: Instant, through: Instant) -> list[RunWindow]:
    """Returns the windows due in (after, through], in order, each with its term."""
    found: list[RunWindow] = []
    for term, end in spans(terms):
        due = next_due(term, after)
        while due <= end and due <= through:
            found.append(RunWindow(due, term))
            due = next_due(term, due) if term.schedule else Instant(due + term.interval_us)
    return found


def window_at(terms: Sequence[ScheduleTerm], due: Instant) -> RunWindow | None:
    """Returns the window due exactly at `due`, or None."""
    found = windows(terms, Instant(due - 1), due)
    return found[0] if found else None


def next_window(terms: Sequence[ScheduleTerm], after: Instant) -> RunWindow | None:
    """Returns the first window due after an instant. Returns None only without terms."""
    for term, end in spans(terms):
        if end > after:
            due = next_due(term, after)
            if due <= end:
                return RunWindow(due, term)
    return None


def next_due(term: ScheduleTerm, after: Instant) -> Instant:
    """Returns the first due instant after both `after` and the start of the term."""
    start = max(after, term.from_)
    cron = term.cron
    if cron is not None:
        return Instant(cron.next_after(start))
    return Instant(start + term.interval_us - (start - term.anchor) % term.interval_us)


def term_at(terms: Sequence[ScheduleTerm], instant: Instant) -> ScheduleTerm | None:
    """Returns the term that governs an instant, None before the first term."""
    for term in reversed(terms):
        if term.from_ < instant:
            return term
    return None


def claimable_until(due: Instant, interval_us: int) -> Instant:
    """Returns the exclusive end of the period in which a worker can claim the window."""
    return Instant(due + min(interval_us, CLAIMABLE_US))


def sealing_at(window: RunWindow, manner: ResultMode) -> Instant:
    """Returns when a window without a result becomes missed."""
    return Instant(result_expected_by(window, manner) + LATE_ARRIVAL_US)


def result_expected_by(window: RunWindow, manner: ResultMode) -> Instant:
    """Returns the last instant of the run, or of the period that a push must arrive in."""
    term = window.term
    allowed_us = {
        ResultMode.PROBE: term.timeout_us,
        ResultMode.COMPOSITE: 0,
        ResultMode.PUSH: term.covering_us,
    }[manner]
    return Instant(window.due + allowed_us)


def promised(term: ScheduleTerm) -> tuple[bool, int, int, str, str]:
    """Returns what determines the deadlines of a push monitor."""
    return term.enabled, term.interval_us, term.grace_us, term.schedule, term.timezone


def deadline_of(heartbeat: Instant, term: ScheduleTerm) -> Instant:
    """Returns the deadline after a heartbeat if the term goes on and the server listens."""
    cron = term.cron
    waits_from = heartbeat + term.interval_us if cron is None else cron.next_after(heartbeat)
    return Instant(waits_from + term.grace_us)


def deadline_after_missed(missed: Instant, term: ScheduleTerm) -> Instant:
    """Returns the deadline after a `push_missed`, under the same conditions."""
    cron = term.cron
    if cron is None:
        return Instant(missed + term.interval_us)
    return Instant(cron.next_after(missed - term.grace_us) + term.grace_us)


def confirm_at(
    known_at: Instant,
    failures: int,
    failure_threshold: int,
    confirm_interval_us: int,
    term: ScheduleTerm,
) -> Instant | None:
    """Returns the instant of the confirming run after a failure, or None.

    None means that the next window follows soon enough, that the threshold is reached, or that
    `confirm_interval_us` is 0 (disabled). Other intervals are limited to between 5 s and the
    monitor's interval. `failures` includes the failure that was known at `known_at`.
    """
    if not confirm_interval_us or not 0 < failures < failure_threshold:
        return None
    wait_us = max(min(confirm_interval_us, term.interval_us), CONFIRM_LEAST_US)
    at = Instant(known_at + wait_us)
    return at if at < next_due(term, known_at) else None
