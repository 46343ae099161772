"""Sets of time, against sets of numbers."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.core.instant import Instant
from leadline.storage.core.time_span import (
    TimeSpan,
    clipped,
    cut_at_starts,
    holding,
    merged,
    total_us,
    without,
)

spans = st.lists(
    st.builds(
        lambda a, n: TimeSpan(Instant(a), Instant(a + n)), st.integers(-20, 40), st.integers(-2, 15)
    ),
    max_size=8,
)


def numbers(some: list[TimeSpan]) -> set[int]:
    return {t for s in some for t in range(s.from_, s.until)}


@given(spans)
def test_merging_keeps_the_time_and_leaves_gaps_between(some: list[TimeSpan]) -> None:
    result = merged(some)
    assert numbers(result) == numbers(some)
    assert total_us(result) == len(numbers(some))
    assert all(span.from_ < span.until for span in result)
    assert all(a.until < b.from_ for a, b in itertools.pairwise(result))


@given(spans, spans)
def test_taking_away_is_taking_away(some: list[TimeSpan], holes: list[TimeSpan]) -> None:
    result = without(merged(some), merged(holes))
    assert numbers(result) == numbers(some) - numbers(holes)
    assert total_us(result) == len(numbers(result))
    assert result == sorted(result)
    assert all(span.from_ < span.until for span in result)


@given(spans, st.integers(-25, 60), st.integers(0, 40))
def test_clipping_keeps_what_lies_within(some: list[TimeSpan], from_: int, length: int) -> None:
    within = TimeSpan(Instant(from_), Instant(from_ + length))
    result = clipped(merged(some), within)
    assert numbers(result) == numbers(some) & numbers([within])
    assert all(span.from_ < span.until for span in result)


@given(spans, st.integers(-25, 60))
def test_the_span_that_contains_an_instant_is_found(some: list[TimeSpan], instant: int) -> None:
    found = holding(merged(some), Instant(instant))
    assert (found is not None) == (instant in numbers(some))
    assert found is None or found.from_ <= instant < found.until


@given(spans)
def test_cutting_at_starts_keeps_the_time_and_every_start(some: list[TimeSpan]) -> None:
    result = cut_at_starts(some)
    assert numbers(result) == numbers(some)
    assert total_us(result) == len(numbers(some))
    assert all(a.until <= b.from_ for a, b in itertools.pairwise(result))
    assert {span.from_ for span in result} == {s.from_ for s in some if s.from_ < s.until}
