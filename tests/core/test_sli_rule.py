"""Splits of time, against painting every microsecond of a short day."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.core.instant import DAY, HOUR, SECOND, Instant
from leadline.storage.core.sli import Sample, SliCondition, Split, buckets, split, timeline, total
from leadline.storage.core.time_span import TimeSpan, cut_at_starts

NOW = Instant(1_800_000_000 * SECOND)


def span(from_: int, until: int) -> TimeSpan:
    return TimeSpan(Instant(from_), Instant(until))


@st.composite
def sample_lists(draw: st.DrawFn) -> list[Sample]:
    instants = sorted(draw(st.sets(st.integers(-20, 100), max_size=12)))
    return [
        Sample(Instant(i), draw(st.booleans()), Instant(i + draw(st.integers(0, 40))))
        for i in instants
    ]


span_sets = st.lists(
    st.builds(lambda a, n: span(a, a + n), st.integers(-10, 90), st.integers(1, 25)), max_size=3
)


def paint(
    samples: list[Sample], maintenance: list[TimeSpan], pauses: list[TimeSpan], instant: int
) -> SliCondition:
    """The sentences of the text, asked about one microsecond."""
    if any(s.from_ <= instant < s.until for s in maintenance):
        return SliCondition.EXCLUDED
    if any(s.from_ <= instant < s.until for s in pauses):
        return SliCondition.UNKNOWN
    before = [s for s in samples if s.instant <= instant]
    if not before or instant >= before[-1].until:
        return SliCondition.UNKNOWN
    begun = [s.from_ for s in (*maintenance, *pauses)]
    if any(before[-1].instant < start <= instant for start in begun):
        return SliCondition.UNKNOWN
    return SliCondition.GOOD if before[-1].up else SliCondition.BAD


@given(sample_lists(), span_sets, span_sets, st.integers(-5, 80), st.integers(0, 60))
def test_a_split_counts_every_microsecond_as_exactly_one_thing(
    samples: list[Sample],
    maintenance: list[TimeSpan],
    pauses: list[TimeSpan],
    from_: int,
    length: int,
) -> None:
    painted = [paint(samples, maintenance, pauses, t) for t in range(from_, from_ + length)]
    cut = cut_at_starts(maintenance), cut_at_starts(pauses)
    assert split(samples, span(from_, from_ + length), *cut) == Split(
        *(painted.count(condition) for condition in SliCondition)
    )


@given(sample_lists(), span_sets, span_sets, st.integers(-5, 80), st.integers(1, 60))
def test_a_timeline_has_the_condition_of_every_microsecond(
    samples: list[Sample],
    maintenance: list[TimeSpan],
    pauses: list[TimeSpan],
    from_: int,
    length: int,
) -> None:
    cut = cut_at_starts(maintenance), cut_at_starts(pauses)
    pieces = timeline(samples, span(from_, from_ + length), *cut)
    spread = [condition for piece, condition in pieces for _ in range(piece.length_us)]
    assert spread == [paint(samples, maintenance, pauses, t) for t in range(from_, from_ + length)]
    assert all(a[1] != b[1] for a, b in itertools.pairwise(pieces))


@given(sample_lists(), span_sets, span_sets, st.sets(st.integers(-20, 110), min_size=2, max_size=9))
def test_rollups_add_up_to_the_whole(
    samples: list[Sample], maintenance: list[TimeSpan], pauses: list[TimeSpan], edges: set[int]
) -> None:
    cuts = [Instant(edge) for edge in sorted(edges)]
    maintenance, pauses = cut_at_starts(maintenance), cut_at_starts(pauses)
    each = buckets(samples, cuts, maintenance, pauses)
    assert each == [
        split(samples, TimeSpan(a, b), maintenance, pauses) for a, b in itertools.pairwise(cuts)
    ]
    whole = total(each)
    assert whole == split(samples, TimeSpan(cuts[0], cuts[-1]), maintenance, pauses)
    assert whole.range_us == cuts[-1] - cuts[0]


def test_missing_data_is_neither_up_nor_down() -> None:
    nothing = split([], span(0, 100))
    assert nothing == Split(unknown_us=100)
    assert nothing.availability() is None
    assert nothing.coverage() == 0
    assert split([], span(0, 100), [span(0, 100)]).coverage() is None


def test_availability_and_coverage_are_exact() -> None:
    measured = Split(good_us=2, bad_us=1, unknown_us=3, excluded_us=4)
    assert str(measured.availability()) == "2/3"
    assert str(measured.coverage()) == "1/2"


def test_a_month_of_results_is_split_into_hours_in_one_pass() -> None:
    samples = [
        Sample(
            Instant(NOW + i * 30 * SECOND),
            i % 1_000 != 0,
            Instant(NOW + i * 30 * SECOND + 90 * SECOND),
        )
        for i in range(30 * 2_880)
    ]
    hours = [Instant(NOW + hour * HOUR) for hour in range(30 * 24 + 1)]
    each = buckets(samples, hours, [span(NOW + DAY, NOW + DAY + HOUR)])
    assert len(each) == 720
    assert total(each).range_us == 30 * DAY
    assert each[24] == Split(excluded_us=HOUR)
    assert total(each).bad_us == sum(
        30 * SECOND for i in range(0, 30 * 2_880, 1_000) if not 2_880 <= i < 3_000
    )
