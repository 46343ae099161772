"""The promise of a push monitor, against a clerk who sits through every instant."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.core.instant import DAY, HOUR, MINUTE, SECOND, Instant
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
from leadline.storage.scheduling.rules.expected_run import MissedReason, Verdict, WithheldReason
from leadline.storage.scheduling.rules.run_schedule import RunWindow, ScheduleTerm, windows
from tests.support.run.effort import varied

NOW = Instant(1_800_000_000 * SECOND)
FOREVER = Instant(NOW + 4_000 * DAY)


def span(from_: int, until: int) -> TimeSpan:
    return TimeSpan(Instant(from_), Instant(until))


def job(interval_us: int, grace_us: int = 60 * SECOND, from_: int = NOW - DAY) -> ScheduleTerm:
    return ScheduleTerm(Instant(from_), NOW, interval_us, 10 * SECOND, grace_us)


# The model: whole numbers small enough to visit each.


@st.composite
def listenings(draw: st.DrawFn, end: int = 140) -> list[TimeSpan]:
    """Closed spans of listening, with at least one instant without listening between two of
    them."""
    spans, at = [], draw(st.integers(0, 15))
    while at <= end:
        until = at + draw(st.integers(0, 60))
        spans.append(span(at, until))
        at = until + draw(st.integers(2, 20))
    return spans


@st.composite
def promises(draw: st.DrawFn) -> list[ScheduleTerm]:
    starts = sorted(draw(st.sets(st.integers(-10, 120), min_size=1, max_size=4)))
    return [
        ScheduleTerm(
            Instant(start),
            Instant(draw(st.integers(-10, 10))),
            draw(st.integers(3, 15)),
            1,
            draw(st.integers(0, 6)),
            enabled=draw(st.sampled_from([True, True, True, False])),
        )
        for start in starts
    ]


@st.composite
def maintenances(draw: st.DrawFn) -> list[TimeSpan]:
    spans, at = [], draw(st.integers(0, 150))
    while at < 140:
        until = at + draw(st.integers(1, 25))
        spans.append(span(at, until))
        at = until + draw(st.integers(1, 100))
    return spans


def instants_heard(heard: Sequence[TimeSpan]) -> set[int]:
    return {t for s in heard for t in range(s.from_, s.until + 1)}


def is_failure(start: int, wait: int, promise: int, heard: set[int], at: int) -> bool:
    """True if the silence since `start` is a failure at the instant `at`."""
    listened = sum(1 for t in range(start + 1, at + 1) if t in heard and t - 1 in heard)
    if at in heard and listened >= 2 * promise:
        return True
    deaf = [t for t in range(start, at + 1) if t not in heard]
    if at in deaf:
        return False
    return at - (max(deaf) + 1) >= promise if deaf else at - start >= wait


def sit_through(
    since: int,
    terms: Sequence[ScheduleTerm],
    maintenance: Sequence[TimeSpan],
    heard: set[int],
    through: int,
) -> list[int]:
    """Every `push_missed` of a silence, computed by a test of each instant."""
    found: list[int] = []
    promised: tuple[bool, int, int] | None = None
    begun: int | None = None
    for now in range(since, through + 1):
        # A heartbeat can arrive before the first term begins, and is the begin of its wait.
        term = next((t for t in reversed(terms) if t.from_ <= now), terms[0])
        mine = (term.enabled, term.interval_us, term.grace_us)
        in_maintenance = any(s.from_ <= now < s.until for s in maintenance)
        if mine != promised or begun is None:
            promised, begun = mine, now
            start, wait = now, term.interval_us + term.grace_us
        if in_maintenance or not term.enabled:
            begun = None
            continue
        if now > start and is_failure(start, wait, term.interval_us + term.grace_us, heard, now):
            found.append(now)
            start, wait = now, term.interval_us
    return found


@given(st.integers(0, 40), promises(), maintenances(), listenings(), st.integers(0, 150))
def test_the_failures_are_those_that_a_clerk_would_note(
    since: int,
    terms: list[ScheduleTerm],
    maintenance: list[TimeSpan],
    heard: list[TimeSpan],
    through: int,
) -> None:
    found = missed_deadlines(PushGap(Instant(since)), terms, maintenance, heard, Instant(through))
    assert found == sit_through(since, terms, maintenance, instants_heard(heard), through)


@given(st.integers(0, 40), promises(), maintenances(), listenings(), st.data())
def test_the_number_of_passes_does_not_change_the_failures(
    since: int,
    terms: list[ScheduleTerm],
    maintenance: list[TimeSpan],
    heard: list[TimeSpan],
    data: st.DataObject,
) -> None:
    at_once = missed_deadlines(PushGap(Instant(since)), terms, maintenance, heard, Instant(150))
    silence, bit_by_bit = PushGap(Instant(since)), []
    for through in [*sorted(data.draw(st.lists(st.integers(0, 150), max_size=6))), 150]:
        # An early pass knows only the listening spans up to its own instant.
        known = [span(s.from_, min(s.until, through)) for s in heard if s.from_ <= through]
        found = missed_deadlines(silence, terms, maintenance, known, Instant(through))
        bit_by_bit += found
        if found:
            silence = PushGap(silence.since, found[-1])
    assert bit_by_bit == at_once


@given(st.integers(0, 40), promises(), maintenances(), listenings())
def test_the_next_deadline_is_the_instant_of_the_next_failure(
    since: int, terms: list[ScheduleTerm], maintenance: list[TimeSpan], heard: list[TimeSpan]
) -> None:
    ahead = [*heard[:-1], span(heard[-1].from_, 600)]
    found = missed_deadlines(PushGap(Instant(since)), terms, maintenance, ahead, Instant(600))
    expected = found[0] if found else None
    assert next_deadline(PushGap(Instant(since)), terms, maintenance, heard) == expected


@given(promises(), maintenances(), listenings(), st.sets(st.integers(0, 140), max_size=14))
def test_silence_without_end_always_has_a_failure(
    terms: list[ScheduleTerm], maintenance: list[TimeSpan], heard: list[TimeSpan], beats: set[int]
) -> None:
    # A heartbeat is received only while a process listens, and not recorded while paused.
    listening = instants_heard(heard)
    kept = sorted(
        b
        for b in beats
        if b in listening and next((t.enabled for t in reversed(terms) if t.from_ <= b), False)
    )
    failures = [
        m
        for beat, following in pairwise([*kept, 10_000])
        for m in missed_deadlines(
            PushGap(Instant(beat)), terms, maintenance, heard, Instant(min(following - 1, 400))
        )
    ]
    for window in windows(terms, Instant(-20), Instant(120)):
        end = window.due + window.term.interval_us + window.term.grace_us
        if any(window.due <= beat <= end for beat in kept):
            continue
        last = max((beat for beat in kept if beat <= end), default=None)
        found = verdict_of_gap(
            window, None if last is None else Instant(last), terms, maintenance, heard
        )
        if found.reason is MissedReason.NO_HEARTBEAT:
            assert last is not None
            assert any(last < failure <= end for failure in failures)
        if found.verdict is Verdict.MISSED:
            wholly = set(range(window.due, end + 1)) <= listening
            assert (found.reason is MissedReason.NO_HEARTBEAT) == wholly


@given(promises(), st.integers(0, 140), st.none() | st.integers(0, 140))
def test_a_heartbeat_covers_each_running_window_that_it_lies_in(
    terms: list[ScheduleTerm], beat: int, previous: int | None
) -> None:
    if previous is not None and previous > beat:
        previous, beat = beat, previous
    expected = [
        w
        for w in windows(terms, Instant(-200), Instant(200))
        if w.term.enabled
        and w.due <= beat <= w.due + w.term.interval_us + w.term.grace_us
        and (previous is None or not w.due <= previous)
    ]
    covered = newly_covered(terms, Instant(beat), None if previous is None else Instant(previous))
    assert covered == expected


# The scenarios of the specification.


def deaf_daily(days: int, for_us: int) -> list[TimeSpan]:
    """Spans of listening between daily restarts, each with a gap of `for_us`."""
    starts = [NOW - DAY + 7 * HOUR + day * DAY for day in range(days)]
    return [span(start + for_us, start + DAY) for start in starts]


@pytest.mark.parametrize("heartbeats", varied([100_000], [100_000, 1_000_000]))
def test_two_seconds_of_cron_jitter_raise_no_alarm(heartbeats: int) -> None:
    term = job(MINUTE, grace_us=2 * SECOND)
    heard = [span(NOW - DAY, FOREVER)]
    last = NOW
    for number in range(1, heartbeats + 1):
        jitter_us = number * 2_654_435_761 % (2 * SECOND + 1)
        beat = Instant(NOW + number * MINUTE + jitter_us)
        assert not missed_deadlines(PushGap(last), [term], [], heard, Instant(beat - 1))
        last = beat


def test_a_monitor_resumed_after_two_weeks_is_not_down_for_them() -> None:
    resumed = Instant(NOW + 14 * DAY)
    terms = [
        job(HOUR),
        ScheduleTerm(Instant(NOW + 10), NOW, HOUR, SECOND, 60 * SECOND, enabled=False),
        ScheduleTerm(resumed, NOW, HOUR, SECOND, 60 * SECOND),
    ]
    heard = [span(NOW - DAY, FOREVER)]
    silence = PushGap(NOW)
    assert not missed_deadlines(silence, terms, [], heard, Instant(resumed + HOUR + MINUTE - 1))
    assert next_deadline(silence, terms, [], heard) == resumed + HOUR + MINUTE


def test_a_daily_restart_does_not_hide_a_dead_daily_job() -> None:
    term = job(DAY, grace_us=HOUR)
    heard = deaf_daily(10, for_us=30 * SECOND)
    found = missed_deadlines(PushGap(NOW), [term], [], heard, Instant(NOW + 8 * DAY))
    promise_us = DAY + HOUR
    # Two promises of listening: two days and two hours, and the two gaps of the restarts in them.
    assert found[0] == NOW + 2 * promise_us + 2 * 30 * SECOND
    assert len(found) >= 3


def test_an_outage_of_leadline_fails_no_push_monitor() -> None:
    term = job(MINUTE)
    again = Instant(NOW + 2 * HOUR)
    heard = [span(NOW - DAY, NOW + 5 * SECOND), span(again, FOREVER)]
    silence = PushGap(NOW)
    assert not missed_deadlines(silence, [term], [], heard, Instant(again + 2 * MINUTE - 1))
    assert next_deadline(silence, [term], [], heard) == again + 2 * MINUTE
    unheard = RunWindow(Instant(NOW + HOUR), term)
    assert verdict_of_gap(unheard, NOW, [term], [], heard).reason is MissedReason.NOT_LISTENING


def test_a_silent_monitor_does_not_fail_again_during_an_outage_of_leadline() -> None:
    term = job(MINUTE)
    again = Instant(NOW + 2 * HOUR)
    heard = [span(NOW - DAY, NOW + 5 * MINUTE), span(again, FOREVER)]
    found = missed_deadlines(PushGap(NOW), [term], [], heard, Instant(again + 3 * MINUTE))
    assert found == [
        *(NOW + minute * MINUTE for minute in range(2, 6)),
        again + 2 * MINUTE,
        again + 3 * MINUTE,
    ]


def test_no_deadline_is_judged_without_a_listener() -> None:
    heard = [span(NOW - DAY, NOW + 5 * SECOND)]
    assert not missed_deadlines(PushGap(NOW), [job(MINUTE)], [], heard, Instant(NOW + DAY))
    assert not missed_deadlines(PushGap(NOW), [job(MINUTE)], [], [], Instant(NOW + DAY))


def test_a_heartbeat_at_its_very_deadline_is_in_time() -> None:
    heard = [span(NOW - DAY, FOREVER)]
    deadline = Instant(NOW + 2 * MINUTE)
    silence = PushGap(NOW)
    assert missed_deadlines(silence, [job(MINUTE)], [], heard, Instant(deadline - 1)) == []
    assert missed_deadlines(silence, [job(MINUTE)], [], heard, deadline) == [deadline]


def test_the_end_of_a_maintenance_restarts_the_promise() -> None:
    heard = [span(NOW - DAY, FOREVER)]
    maintenance = [span(NOW + MINUTE, NOW + HOUR)]
    assert next_deadline(PushGap(NOW), [job(MINUTE)], maintenance, heard) == NOW + HOUR + 2 * MINUTE


def test_an_edit_of_the_target_s_name_does_not_give_it_more_time() -> None:
    heard = [span(NOW - DAY, FOREVER)]
    terms = [job(MINUTE), job(MINUTE, from_=NOW + 30 * SECOND)]
    assert next_deadline(PushGap(NOW), terms, [], heard) == NOW + 2 * MINUTE


def test_before_the_first_heartbeat_a_window_awaits_it() -> None:
    window = RunWindow(NOW, job(MINUTE))
    heard = [span(NOW - DAY, FOREVER)]
    assert (
        verdict_of_gap(window, None, [job(MINUTE)], [], heard).reason
        is WithheldReason.AWAITING_FIRST
    )
    over = [span(NOW + 119 * SECOND, NOW + 121 * SECOND)]
    found = verdict_of_gap(window, None, [job(MINUTE)], over, heard)
    assert found.reason is WithheldReason.MAINTENANCE


def test_a_window_is_withheld_when_a_maintenance_touches_its_promise() -> None:
    window = RunWindow(NOW, job(MINUTE))
    heard = [span(NOW - DAY, FOREVER)]
    due, end = NOW, NOW + 2 * MINUTE

    def reason(*maintenance: TimeSpan) -> object:
        last = Instant(NOW - SECOND)
        return verdict_of_gap(window, last, [job(MINUTE)], list(maintenance), heard).reason

    # A maintenance that ended at the due instant does not overlap the promise.
    assert reason(span(due - MINUTE, due)) is MissedReason.NO_HEARTBEAT
    assert reason(span(due - MINUTE, due + 1)) is WithheldReason.MAINTENANCE
    assert reason(span(due + 1, due + 2)) is WithheldReason.MAINTENANCE
    assert reason(span(end, end + 1)) is WithheldReason.MAINTENANCE
    assert reason(span(end + 1, end + 2)) is MissedReason.NO_HEARTBEAT


def test_a_window_with_an_edit_or_a_pause_in_its_promise_is_withheld() -> None:
    window = RunWindow(NOW, job(MINUTE))
    heard = [span(NOW - DAY, FOREVER)]
    last = Instant(NOW - SECOND)
    edited = [job(MINUTE), job(HOUR, from_=NOW + SECOND)]
    assert verdict_of_gap(window, last, edited, [], heard).reason is WithheldReason.AWAITING_FIRST
    paused = [job(MINUTE), ScheduleTerm(Instant(NOW + SECOND), NOW, MINUTE, SECOND, enabled=False)]
    assert verdict_of_gap(window, last, paused, [], heard).reason is WithheldReason.PAUSED
    withheld = verdict_of_gap(RunWindow(NOW, paused[1]), last, paused, [], heard)
    assert withheld.reason is WithheldReason.PAUSED
    later = [job(MINUTE), job(HOUR, from_=NOW + 2 * MINUTE + 1)]
    assert verdict_of_gap(window, last, later, [], heard).reason is MissedReason.NO_HEARTBEAT


def test_a_heartbeat_is_fresh_until_its_deadline_and_a_failure_for_an_interval() -> None:
    assert fresh_until(NOW, [job(MINUTE)]) == NOW + 2 * MINUTE
    assert missed_hold_until(NOW, [job(MINUTE)]) == NOW + MINUTE
    longer = [job(MINUTE), job(HOUR, from_=NOW + MINUTE)]
    assert fresh_until(NOW, longer) == NOW + HOUR + 2 * MINUTE
    shorter = [job(HOUR), job(MINUTE, from_=NOW + MINUTE)]
    assert fresh_until(NOW, shorter) == NOW + 3 * MINUTE


def test_a_term_counts_for_a_heartbeat_at_its_first_instant() -> None:
    paused = ScheduleTerm(NOW, NOW, HOUR, 10 * SECOND, 60 * SECOND, enabled=False)
    assert fresh_until(NOW, [job(MINUTE), paused]) == NOW + HOUR + MINUTE


def test_an_edit_at_the_deadline_extends_the_freshness() -> None:
    deadline = NOW + 2 * MINUTE
    edited = [job(MINUTE), job(HOUR, from_=deadline)]
    assert fresh_until(NOW, edited) == deadline + HOUR + MINUTE
    edited = [job(MINUTE), job(HOUR, from_=deadline + 1)]
    assert fresh_until(NOW, edited) == deadline


def test_a_missed_deadline_at_the_beginning_of_a_promise_does_not_count_for_it() -> None:
    terms = [job(MINUTE), job(HOUR, from_=NOW)]
    heard = [span(NOW - DAY, FOREVER)]
    before, at = PushGap(Instant(NOW - MINUTE)), PushGap(Instant(NOW - 2 * MINUTE), NOW)
    for silence in (before, at):
        assert next_deadline(silence, terms, [], heard) == NOW + HOUR + MINUTE
