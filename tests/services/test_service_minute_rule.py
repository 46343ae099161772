"""Runs of minutes, compared with a list of single minutes."""

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.storage.core.instant import DAY, MINUTE, SECOND, Instant
from leadline.storage.core.sli import SliCondition
from leadline.storage.core.time_span import TimeSpan
from leadline.storage.services.rules.service_health import (
    Durations,
    Health,
    ServiceHealthState,
    durations,
)
from leadline.storage.services.rules.service_minute import MinuteSpan, joined, replaced, runs_of
from tests.support.run.effort import examples

MIDNIGHT = Instant(20_000 * DAY)
_STATES = [
    ServiceHealthState(SliCondition.GOOD, Health.HEALTHY),
    ServiceHealthState(SliCondition.GOOD, Health.UNKNOWN),
    ServiceHealthState(SliCondition.BAD, Health.DOWN),
    ServiceHealthState(SliCondition.UNKNOWN, Health.UNKNOWN),
    ServiceHealthState(SliCondition.EXCLUDED, None),
]
_EACH = [Durations(good_us=MINUTE), Durations(bad_us=MINUTE), Durations(unknown_us=MINUTE)]


@st.composite
def _lines(draw: st.DrawFn) -> tuple[TimeSpan, list[tuple[TimeSpan, ServiceHealthState]]]:
    start = Instant(MIDNIGHT + draw(st.integers(-12, 2)) * MINUTE)
    until = Instant(start + draw(st.integers(1, 20)) * MINUTE)
    seconds = (until - start) // SECOND
    cuts = draw(st.sets(st.integers(1, seconds - 1), max_size=8))
    edges = [start, *(Instant(start + cut * SECOND) for cut in sorted(cuts)), until]
    pieces = [
        (TimeSpan(one, other), draw(st.sampled_from(_STATES)))
        for one, other in itertools.pairwise(edges)
    ]
    return TimeSpan(start, until), pieces


@given(_lines())
@settings(max_examples=examples(300), deadline=None)
def test_runs_equal_the_timeline_of_each_minute(
    made: tuple[TimeSpan, list[tuple[TimeSpan, ServiceHealthState]]],
) -> None:
    within, line = made
    edges = [Instant(at) for at in range(within.from_, within.until + 1, MINUTE)]
    runs = runs_of(line, within, 7)
    assert _each(runs) == dict(zip(edges, durations(line, edges), strict=False))
    _expect_in_order(runs)
    for one, other in itertools.pairwise(runs):
        assert one.each != other.each or other.from_ == MIDNIGHT


@st.composite
def _runs(draw: st.DrawFn) -> list[MinuteSpan]:
    at = MIDNIGHT - draw(st.integers(0, 3000)) * MINUTE
    found = []
    for _ in range(draw(st.integers(0, 6))):
        at += draw(st.integers(0, 5)) * MINUTE
        until = at + draw(st.integers(1, 2000)) * MINUTE
        each = draw(st.sampled_from(_EACH))
        found.append(MinuteSpan(Instant(at), Instant(until), draw(st.integers(1, 2)), each))
        at = until
    return joined(found)


@given(_runs(), _runs(), st.integers(-3000, 3000), st.integers(1, 3000))
@settings(max_examples=examples(300), deadline=None)
def test_only_the_given_range_is_replaced(
    before: list[MinuteSpan], other: list[MinuteSpan], start: int, length: int
) -> None:
    within = TimeSpan(
        Instant(MIDNIGHT + start * MINUTE), Instant(MIDNIGHT + (start + length) * MINUTE)
    )
    new = [
        MinuteSpan(max(r.from_, within.from_), min(r.until, within.until), r.epoch, r.each)
        for r in other
        if r.from_ < within.until and r.until > within.from_
    ]
    after = replaced(before, within, new)
    expected = {
        at: each for at, each in _numbered(before).items() if not within.from_ <= at < within.until
    }
    expected |= _numbered(new)
    assert _numbered(after) == expected
    _expect_in_order(after)


def _expect_in_order(runs: list[MinuteSpan]) -> None:
    for one, other in itertools.pairwise(runs):
        assert one.until <= other.from_
    for run in runs:
        assert run.from_ < run.until
        assert run.from_ // DAY == (run.until - 1) // DAY


def _each(runs: list[MinuteSpan]) -> dict[Instant, Durations]:
    return {at: each for at, (_, each) in _numbered(runs).items()}


def _numbered(runs: list[MinuteSpan]) -> dict[Instant, tuple[int, Durations]]:
    return {
        Instant(at): (run.epoch, run.each)
        for run in runs
        for at in range(run.from_, run.until, MINUTE)
    }
