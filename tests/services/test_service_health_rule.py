"""The health of a service, compared with a model that evaluates every member second by second."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.storage.core.instant import SECOND, Instant
from leadline.storage.core.sli import SliCondition
from leadline.storage.core.time_span import TimeSpan
from leadline.storage.services.rules.service_health import (
    EXCLUDED,
    NOT_KNOWN,
    AggregationMode,
    Durations,
    Health,
    MemberState,
    MemberTimeline,
    MissingData,
    Policies,
    RegionMode,
    ServiceHealthState,
    durations,
    state,
    state_line,
)
from tests.support.run.effort import examples
from tests.support.worlds.service_model import by_hand

UP, DOWN, MISSING, NOT_BEGUN, PAUSED, MAINT = MemberState
HEALTHY = ServiceHealthState(SliCondition.GOOD, Health.HEALTHY)
DEGRADED = ServiceHealthState(SliCondition.GOOD, Health.DEGRADED)
IS_DOWN = ServiceHealthState(SliCondition.BAD, Health.DOWN)
GOOD_SOMEHOW = ServiceHealthState(SliCondition.GOOD, Health.UNKNOWN)


def one(mode: AggregationMode, *seen: MemberState, **policies: object) -> ServiceHealthState:
    return state(Policies(mode=mode, **policies), [("core", each) for each in seen])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("mode", "seen", "said"),
    [
        (AggregationMode.ALL, [UP, UP], HEALTHY),
        (AggregationMode.ALL, [UP, DOWN], IS_DOWN),
        (AggregationMode.ALL, [UP, MISSING], NOT_KNOWN),
        (AggregationMode.ALL, [DOWN, MISSING], IS_DOWN),
        (AggregationMode.ALL, [UP, MAINT], HEALTHY),
        (AggregationMode.ALL, [MAINT, MAINT], EXCLUDED),
        (AggregationMode.ANY, [UP, DOWN], DEGRADED),
        (AggregationMode.ANY, [DOWN, DOWN], IS_DOWN),
        (AggregationMode.ANY, [UP, MISSING], GOOD_SOMEHOW),
        (AggregationMode.ANY, [DOWN, MISSING], NOT_KNOWN),
        (AggregationMode.ANY, [MISSING], NOT_KNOWN),
    ],
)
def test_members_of_one_region(
    mode: AggregationMode, seen: list[MemberState], said: ServiceHealthState
) -> None:
    assert one(mode, *seen) == said


def test_a_quorum_is_capped_at_the_members_that_count() -> None:
    given_ = {"healthy_min": 3, "degraded_min": 2}
    assert one(AggregationMode.QUORUM, UP, UP, UP, DOWN, **given_) == HEALTHY
    assert one(AggregationMode.QUORUM, UP, UP, DOWN, DOWN, **given_) == DEGRADED
    assert one(AggregationMode.QUORUM, UP, DOWN, DOWN, DOWN, **given_) == IS_DOWN
    assert one(AggregationMode.QUORUM, UP, MAINT, MAINT, **given_) == HEALTHY


def test_missing_data_counts_as_the_policy_says_and_a_pause_never_does() -> None:
    bad, ignore = {"missing_data": MissingData.BAD}, {"missing_data": MissingData.IGNORE}
    assert one(AggregationMode.ALL, UP, NOT_BEGUN, **bad) == NOT_KNOWN
    assert one(AggregationMode.ALL, UP, NOT_BEGUN, **ignore) == HEALTHY
    assert one(AggregationMode.ALL, NOT_BEGUN, **ignore) == NOT_KNOWN
    assert one(AggregationMode.ALL, UP, MISSING, **bad) == IS_DOWN
    assert one(AggregationMode.ALL, UP, MISSING, **ignore) == HEALTHY
    assert one(AggregationMode.ALL, MISSING, MISSING, **ignore) == NOT_KNOWN
    assert one(AggregationMode.ALL, UP, PAUSED, **bad) == NOT_KNOWN
    assert one(AggregationMode.ALL, UP, PAUSED, **ignore) == NOT_KNOWN
    assert one(AggregationMode.ALL, MISSING, PAUSED, **ignore) == NOT_KNOWN


@pytest.mark.parametrize(
    ("region_mode", "said"),
    [
        (RegionMode.ANY_REGION, HEALTHY),
        (RegionMode.ALL_REGIONS, IS_DOWN),
        (RegionMode.PER_REGION, DEGRADED),
    ],
)
def test_regions(region_mode: RegionMode, said: ServiceHealthState) -> None:
    policies = Policies(region_mode=region_mode, healthy_min_regions=3, degraded_min_regions=2)
    members = [("a", UP), ("b", UP), ("c", DOWN)]
    assert state(policies, members) == said


# The model.

_POLICIES = st.builds(
    lambda mode, mins, region, region_mins, missing: Policies(
        mode, max(mins), min(mins), region, max(region_mins), min(region_mins), missing
    ),
    st.sampled_from(AggregationMode),
    st.tuples(st.integers(1, 4), st.integers(1, 4)),
    st.sampled_from(RegionMode),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.sampled_from(MissingData),
)
_MEMBERS = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c"]), st.sampled_from(list(MemberState))), max_size=6
)


@given(_POLICIES, _MEMBERS)
@settings(max_examples=examples(1_500))
def test_every_state_matches_the_model(
    policies: Policies, members: list[tuple[str, MemberState]]
) -> None:
    said = state(policies, members)
    condition, health = by_hand(policies, members)
    assert (said.condition.value, said.health and said.health.value) == (condition, health)


_SECONDS = 20
_CONDITIONS = {
    "up": SliCondition.GOOD,
    "down": SliCondition.BAD,
    "missing": SliCondition.UNKNOWN,
    "not_begun": SliCondition.UNKNOWN,
    "paused": SliCondition.UNKNOWN,
    "maintenance": SliCondition.EXCLUDED,
}


@st.composite
def _member(draw: st.DrawFn) -> tuple[str, list[MemberState]]:
    """Draws a region, and the state of a member in each second."""
    seconds = [MemberState.NOT_BEGUN] * draw(st.integers(0, 5))
    states = [state for state in MemberState if state is not MemberState.NOT_BEGUN]
    while len(seconds) < _SECONDS:
        seconds += [draw(st.sampled_from(states))] * draw(st.integers(1, 9))
    return draw(st.sampled_from(["a", "b"])), seconds[:_SECONDS]


def _line(seconds: list[MemberState]) -> MemberTimeline:
    line: list[tuple[TimeSpan, SliCondition]] = []
    pauses = []
    for second, seen in enumerate(seconds):
        span = TimeSpan(Instant(second * SECOND), Instant((second + 1) * SECOND))
        if seen is MemberState.PAUSED:
            pauses.append(span)
        condition = _CONDITIONS[seen.value]
        if line and line[-1][1] is condition:
            line[-1] = (TimeSpan(line[-1][0].from_, span.until), condition)
        else:
            line.append((span, condition))
    begun = seconds.count(MemberState.NOT_BEGUN)
    return MemberTimeline("", line, pauses, Instant(begun * SECOND))


@given(_POLICIES, st.lists(_member(), max_size=4), st.sets(st.integers(1, _SECONDS - 1)))
@settings(max_examples=examples(400))
def test_durations_are_the_sum_of_their_seconds(
    policies: Policies, members: list[tuple[str, list[MemberState]]], cuts: set[int]
) -> None:
    lines = [
        MemberTimeline(region, made.line, made.pauses, made.begun)
        for region, seconds in members
        for made in [_line(seconds)]
    ]
    within = TimeSpan(Instant(0), Instant(_SECONDS * SECOND))
    line = state_line(policies, lines, within)
    assert [span.from_ for span, _ in line][:1] == [0]
    assert line[-1][0].until == within.until
    for (before, was), (after, is_) in pairwise(line):
        assert before.until == after.from_
        assert was != is_
    edges = [Instant(cut * SECOND) for cut in sorted({0, *cuts, _SECONDS})]
    found = durations(line, edges)
    for (from_, until), told in zip(pairwise(edges), found, strict=True):
        walked: dict[str, int] = {}
        for second in range(from_ // SECOND, until // SECOND):
            seen = [(region, seconds[second]) for region, seconds in members]
            condition, health = by_hand(policies, seen) if seen else ("unknown", "unknown")
            for word in (condition, {"unknown": "health_unknown"}.get(health or "", health)):
                if word is not None:
                    walked[f"{word}_us"] = walked.get(f"{word}_us", 0) + SECOND
        assert told == Durations(**walked)
    assert sum(found, Durations()) == durations(line, [edges[0], edges[-1]])[0]
