"""Push monitors with a cron expression, against a clerk who sits through every minute."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.core.instant import DAY, HOUR, LATEST, MINUTE, SECOND, Instant
from leadline.storage.core.time_span import TimeSpan
from leadline.storage.results.rules.push_deadline import (
    PushGap,
    fresh_until,
    missed_deadlines,
    missed_hold_until,
    newly_covered,
    next_deadline,
    verdict_of_gap,
)
from leadline.storage.scheduling.rules.expected_run import MissedReason, Verdict
from leadline.storage.scheduling.rules.run_schedule import (
    ResultMode,
    ScheduleTerm,
    result_expected_by,
    windows,
)

# A full hour in UTC. All times of the model are minutes after it.
START: Final = 1_799_996_400_000_000
# Minutes of the hour, and the longest distance.
SCHEDULES: Final = {
    "*/7 * * * *": (set(range(0, 60, 7)), 7),
    "3,20 * * * *": ({3, 20}, 43),
    "10-12 * * * *": ({10, 11, 12}, 58),
    "30 * * * *": ({30}, 60),
}


def at(minute: int) -> Instant:
    return Instant(START + minute * MINUTE)


def minute_of(instant: Instant) -> int:
    assert (instant - START) % MINUTE == 0
    return (instant - START) // MINUTE


@dataclass(frozen=True)
class Promise:
    """Term of the model: from the minute after `from_` on."""

    from_: int
    schedule: str
    grace: int
    enabled: bool

    @property
    def term(self) -> ScheduleTerm:
        return ScheduleTerm(
            from_=at(self.from_),
            anchor=at(0),
            interval_us=MINUTE,
            timeout_us=MINUTE,
            grace_us=self.grace * MINUTE,
            enabled=self.enabled,
            schedule=self.schedule,
        )

    def is_due(self, minute: int) -> bool:
        return minute % 60 in SCHEDULES[self.schedule][0]


@st.composite
def promises(draw: st.DrawFn) -> list[Promise]:
    starts = sorted(draw(st.sets(st.integers(-10, 200), min_size=1, max_size=3)))
    return [
        Promise(
            start,
            draw(st.sampled_from(sorted(SCHEDULES))),
            draw(st.integers(1, 20)),
            draw(st.sampled_from([True, True, True, False])),
        )
        for start in starts
    ]


@st.composite
def spans(draw: st.DrawFn, longest: int, gap: tuple[int, int]) -> list[tuple[int, int]]:
    found, begin = [], draw(st.integers(-5, 60))
    while begin <= 300:
        until = begin + draw(st.integers(1, longest))
        found.append((begin, until))
        begin = until + draw(st.integers(*gap))
    return found


Spans = Sequence[tuple[int, int]]


def governing(terms: Sequence[Promise], minute: int) -> Promise:
    return next((term for term in reversed(terms) if term.from_ < minute), terms[0])


def begun(terms: Sequence[Promise], maintenance: Spans, since: int, minute: int) -> int | None:
    """Begin of the unbroken expectation at a minute, walked back; None if there is none."""
    promise = None
    for now in range(minute, since - 1, -1):
        # The term that governs just after the minute.
        term = next((one for one in reversed(terms) if one.from_ <= now), terms[0])
        mine = (term.schedule, term.grace, term.enabled)
        off = any(begin <= now < until for begin, until in maintenance)
        if off or not term.enabled or promise not in (None, mine):
            return None if now == minute else now + 1
        promise = mine
    return since


def sat_through(
    since: int, terms: Sequence[Promise], maintenance: Spans, heard: Spans, through: int
) -> list[int]:
    """Every `push_missed` of a silence since a heartbeat, by a look at each minute."""
    found: list[int] = []
    for now in range(since + 1, through + 1):
        start = begun(terms, maintenance, since, now)
        if start is None:
            continue
        term = next((one for one in reversed(terms) if one.from_ <= now), terms[0])
        due = now - term.grace
        resumed = any(until == start for _, until in maintenance) and start > since
        edited = any(one.from_ == start for one in terms)
        is_after = due > terms[0].from_ and (
            due > start or (due == start and resumed and not edited)
        )
        if not term.is_due(due) or not is_after or now == start:
            continue
        silent_from = max([start, *found[-1:]])
        whole = any(begin <= due and now <= until for begin, until in heard)
        listened = sum(max(min(until, now) - max(begin, silent_from), 0) for begin, until in heard)
        is_heard = any(begin <= now <= until for begin, until in heard)
        enough = 2 * (SCHEDULES[term.schedule][1] + term.grace)
        if whole or (is_heard and listened >= enough):
            found.append(now)
    return found


def told(spans_: Spans) -> list[TimeSpan]:
    return [TimeSpan(at(begin), at(until)) for begin, until in spans_]


@given(
    st.integers(0, 100),
    promises(),
    st.just([]) | spans(20, (1, 150)),
    st.just([(-60, 400)]) | spans(90, (1, 12)),
)
def test_missed_deadlines_are_those_of_the_clerk(
    since: int, model: list[Promise], maintenance: Spans, heard: Spans
) -> None:
    terms = [promise.term for promise in model]
    through = min(290, heard[-1][1])
    expected = sat_through(since, model, maintenance, heard, through)
    given_ = terms, told(maintenance), told(heard)
    silence = PushGap(at(since))
    found = missed_deadlines(silence, *given_, at(through))
    assert [minute_of(one) for one in found] == expected
    # Interrupted after each failure, the rest is the same.
    for position, missed in enumerate(found):
        rest = missed_deadlines(PushGap(at(since), missed), *given_, at(through))
        assert rest == found[position + 1 :]
    following = next_deadline(silence, *given_)
    if expected:
        assert following == at(expected[0])
    elif following is not None:
        assert following > at(through)


@given(
    st.integers(-40, 100),
    promises(),
    st.just([]) | spans(20, (1, 150)),
    st.just([(-60, 400)]) | spans(90, (1, 12)),
)
def test_each_silent_window_has_a_failure(
    since: int, model: list[Promise], maintenance: Spans, heard: Spans
) -> None:
    terms = [promise.term for promise in model]
    off, listened = told(maintenance), told(heard)
    end = at(heard[-1][1])
    missed = set(missed_deadlines(PushGap(at(since)), terms, off, listened, end))
    for window in windows(terms, at(-40), at(250)):
        expected_by = result_expected_by(window, ResultMode.PUSH)
        if expected_by > end or expected_by < at(since):
            continue
        verdict = verdict_of_gap(window, at(since), terms, off, listened)
        if verdict.reason is MissedReason.NO_HEARTBEAT:
            assert expected_by in missed
        if window.due <= at(since):
            assert verdict.verdict in (Verdict.COVERED_LATE, Verdict.WITHHELD)


@given(st.integers(0, 200), st.integers(0, 200), promises())
def test_a_heartbeat_covers_the_windows_that_wait_for_it(
    heartbeat: int, previous: int, model: list[Promise]
) -> None:
    terms = [promise.term for promise in model]
    found = newly_covered(terms, at(heartbeat), at(previous) if previous < heartbeat else None)
    expected = [
        minute
        for minute in range(-60, heartbeat + 1)
        if (term := governing(model, minute)).from_ < minute
        and term.enabled
        and term.is_due(minute)
        and minute <= heartbeat <= minute + term.grace
        and not (previous < heartbeat and minute <= previous)
    ]
    assert [minute_of(window.due) for window in found] == expected


@given(st.integers(0, 100), promises().filter(lambda model: len(model) == 1))
def test_a_heartbeat_is_fresh_until_its_deadline(since: int, model: list[Promise]) -> None:
    (promise,) = model
    terms = [promise.term]
    always = [TimeSpan(at(-60), LATEST)]
    deadline = next_deadline(PushGap(at(since)), terms, (), always)
    if not promise.enabled:
        assert deadline is None
        return
    assert deadline == fresh_until(at(since), terms)
    following = next_deadline(PushGap(at(since), deadline), terms, (), always)
    assert following == missed_hold_until(deadline, terms)


def test_the_patience_contains_a_day_that_a_change_of_the_clocks_skips() -> None:
    heartbeat = Instant(int(datetime(2027, 3, 21, 1, 30, tzinfo=UTC).timestamp()) * SECOND)
    term = ScheduleTerm(
        from_=Instant(heartbeat - DAY),
        anchor=heartbeat,
        interval_us=30 * MINUTE,
        timeout_us=0,
        grace_us=HOUR,
        schedule="*/30 2 * * 0",
        timezone="Europe/Berlin",
    )
    waits_us = fresh_until(heartbeat, [term]) - heartbeat
    assert 13 * DAY < waits_us <= term.patience_us
