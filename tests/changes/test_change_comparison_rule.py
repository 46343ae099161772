"""Before and after a change, against a walk over the minutes, one by one."""

from fractions import Fraction
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.changes.rules.change_comparison import (
    HORIZONS,
    Begin,
    ComparisonWithheld,
    SealedRange,
    SealedSums,
    Side,
    after_of,
    before_of,
    begins_of,
    delta_of,
    sides_of,
)
from leadline.storage.core.instant import MINUTE, SECOND, Instant
from leadline.storage.core.sli import Split
from leadline.storage.core.time_span import TimeSpan
from leadline.storage.services.rules.epoch import Revision
from leadline.storage.services.rules.service_health import (
    AggregationMode,
    MissingData,
    Policies,
    RegionMode,
)

# A whole minute.
ZERO = Instant(1_767_571_200_000_000)
HORIZON = 15


def minute(number: int) -> Instant:
    return Instant(ZERO + number * MINUTE)


# The content of a minute in quarters: good, bad, unknown, excluded; None if the minute is not
# stored.
_QUARTERS = st.sampled_from(
    [(4, 0, 0, 0), (0, 4, 0, 0), (0, 0, 4, 0), (0, 0, 0, 4), (2, 0, 2, 0), (1, 1, 1, 1), None]
)
Minutes = dict[int, tuple[int, int, int, int] | None]


def facts_of(minutes: Minutes, span: TimeSpan) -> SealedSums:
    inside = range((span.from_ - ZERO) // MINUTE, (span.until - ZERO) // MINUTE)
    kept = [m for n in inside if (m := minutes.get(n)) is not None]
    sums = [sum(m[place] for m in kept) * (MINUTE // 4) for place in range(4)]
    return SealedSums(len(kept), Split(*sums))


def model(
    minutes: Minutes,
    numbers: list[int],
    start: int | None,
    through: int,
    changed: set[int],
) -> str | Fraction:
    """The result of one side with these minutes. `changed` are the minutes at whose beginning the
    definition differs from the definition of the side."""
    if start is None or numbers[-1] < start:
        return "no_facts"
    if changed:
        return "definition_changed"
    if numbers[-1] >= through:
        return "pending"
    quarters = [minutes.get(number) for number in numbers]
    if not any(quarters):
        return "no_facts"
    good = bad = counted = 0
    for held in quarters:
        counted += 4 if held is None else 4 - held[3]
        good += held[0] if held else 0
        bad += held[1] if held else 0
    if good + bad == 0 or 2 * (good + bad) < counted:
        return "undecidable"
    return Fraction(good, good + bad)


def figure_of(side: Side) -> str | Fraction:
    if side.is_pending:
        assert side.withheld is None
        assert side.availability is None
        return "pending"
    if side.withheld is not None:
        assert side.availability is None
        assert side.detail
        return side.withheld.value
    assert side.availability is not None
    return side.availability


@given(
    data=st.data(),
    began_s=st.none() | st.integers(0, 240),
    lasted_s=st.integers(0, 240),
    start=st.none() | st.integers(-20, 30),
    through=st.integers(-20, 30),
)
def test_both_sides_equal_a_walk_over_the_minutes(
    data: st.DataObject, began_s: int | None, lasted_s: int, start: int | None, through: int
) -> None:
    ended_s = (began_s or 0) + lasted_s
    held = data.draw(
        st.one_of(
            st.dictionaries(st.integers(-20, 30), _QUARTERS),
            st.lists(_QUARTERS, min_size=51, max_size=51).map(
                lambda each: dict(zip(range(-20, 31), each, strict=True))
            ),
        )
    )
    starts = data.draw(st.sets(st.integers(-20, 30), max_size=2))
    started = None if began_s is None else Instant(ZERO + began_s * SECOND)
    spans = sides_of(started, Instant(ZERO + ended_s * SECOND), HORIZON * MINUTE)

    # The minutes in which the change began and ended are on neither side, except a minute at whose
    # beginning the change ended.
    first = (ended_s if began_s is None else began_s) // 60
    last = -(-ended_s // 60)
    before = list(range(first - HORIZON, first))
    after = list(range(last, last + HORIZON))
    assert spans == (
        TimeSpan(minute(before[0]), minute(first)),
        TimeSpan(minute(last), minute(last + HORIZON)),
    )

    if start is not None:
        through = max(through, start)
        held = {n: each for n, each in held.items() if start <= n < through}
        sealed = SealedRange(minute(start), minute(through))
    else:
        held, sealed = {}, None
    begins = [Begin(minute(at), n + 2) for n, at in enumerate(sorted(starts))]
    found = [facts_of(held, span) for span in spans]
    one = before_of(spans[0], sealed, begins, found[0])
    two = after_of(spans[1], spans[0], sealed, begins, found[1])

    # A definition differs if it is not the definition of the first minute of the side before, or of
    # its last minute, which is the measure of the side after.
    changed = {n for n in before[1:] if n in starts}
    assert figure_of(one) == model(held, before, start, through, changed)
    changed = {n for n in range(before[-1] + 1, after[-1] + 1) if n in starts}
    assert figure_of(two) == model(held, after, start, through, changed)

    delta = delta_of(one, two)
    if isinstance(figure_of(one), Fraction) and isinstance(figure_of(two), Fraction):
        assert delta == 100 * (Fraction(figure_of(two)) - Fraction(figure_of(one)))
    else:
        assert delta is None


_POLICIES = Policies(
    mode=AggregationMode.ALL,
    healthy_min=1,
    degraded_min=1,
    region_mode=RegionMode.ALL_REGIONS,
    healthy_min_regions=1,
    degraded_min_regions=1,
    missing_data=MissingData.UNKNOWN,
    active_multiplier=2,
    active_floor_us=0,
)


def revision(number: int, effective: int, governs: int | None = None) -> Revision:
    return Revision(
        revision=number,
        uid=UUID(int=number),
        effective_at=minute(effective),
        governs_from=minute(effective if governs is None else governs),
        monitors=(),
        sli=(),
        policies=_POLICIES,
    )


def test_the_first_revision_is_no_change_and_of_two_that_begin_together_one_counts() -> None:
    assert begins_of([]) == []
    assert begins_of([revision(1, 5, governs=-90)]) == []
    revisions = [revision(1, 5), revision(2, 9), revision(3, 9), revision(4, 12)]
    assert begins_of(revisions) == [Begin(minute(9), 3), Begin(minute(12), 4)]


UP = dict.fromkeys(range(-20, 30), (4, 0, 0, 0))


@pytest.mark.parametrize(
    ("at", "before", "after"),
    [
        # The sides are [-15, 0) and [1, 16).
        (-15, None, None),
        (-14, ComparisonWithheld.DEFINITION_CHANGED, None),
        (-1, ComparisonWithheld.DEFINITION_CHANGED, None),
        (0, None, ComparisonWithheld.DEFINITION_CHANGED),
        (1, None, ComparisonWithheld.DEFINITION_CHANGED),
        (15, None, ComparisonWithheld.DEFINITION_CHANGED),
        (16, None, None),
    ],
)
def test_a_revision_on_the_edge_of_a_side_governs_what_follows_it(
    at: int, before: ComparisonWithheld | None, after: ComparisonWithheld | None
) -> None:
    spans = sides_of(None, Instant(ZERO + SECOND), HORIZONS["15m"])
    sealed, begins = SealedRange(minute(-20), minute(30)), [Begin(minute(at), 2)]
    one = before_of(spans[0], sealed, begins, facts_of(dict(UP), spans[0]))
    two = after_of(spans[1], spans[0], sealed, begins, facts_of(dict(UP), spans[1]))
    assert (one.withheld, two.withheld) == (before, after)


def test_a_figure_needs_half_of_the_time_that_is_not_excluded() -> None:
    spans = sides_of(None, ZERO, HORIZONS["1h"])
    sealed = SealedRange(minute(-60), minute(60))
    for decided, withheld in ((30, None), (29, ComparisonWithheld.UNDECIDABLE)):
        facts = SealedSums(decided, Split(good_us=decided * MINUTE))
        assert before_of(spans[0], sealed, [], facts).withheld is withheld
    mostly_excluded = SealedSums(
        60, Split(bad_us=5 * MINUTE, unknown_us=5 * MINUTE, excluded_us=50 * MINUTE)
    )
    assert before_of(spans[0], sealed, [], mostly_excluded).availability == 0
    all_excluded = SealedSums(60, Split(excluded_us=60 * MINUTE))
    side = before_of(spans[0], sealed, [], all_excluded)
    assert (side.withheld, side.detail) == (
        ComparisonWithheld.UNDECIDABLE,
        "0 of 0 minutes could be decided",
    )
