"""The replay evaluates only the instants at which something changes, and equals an evaluation of
every minute.
"""

import random
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from leadline.storage.alerting.rules.paging_delegation import SignalReason
from leadline.storage.core.availability import Withheld
from leadline.storage.core.instant import DAY, HOUR, MINUTE, Instant
from leadline.storage.core.sli import Split
from leadline.storage.core.time_span import TimeSpan
from leadline.storage.gate.rules.gate import (
    GateClause,
    GateClauseAssignment,
    GateState,
    UnknownBehavior,
)
from leadline.storage.gate.rules.gate_evidence import decide_clauses
from leadline.storage.gate.rules.gate_policy import Document, WindowMode
from leadline.storage.gate.rules.gate_replay import (
    Hindsight,
    MinuteRun,
    ObjectiveSpan,
    ReplayedSpan,
    ServicePast,
    Sums,
    facts_at,
    hindsight,
    replay,
)
from leadline.storage.objectives.rules import DEFAULT_RULES, BurnRule, BurnSeverity
from tests.support.run.effort import examples

BEGIN = Instant(20_000 * DAY)
UP = Split(good_us=MINUTE)
DOWN = Split(bad_us=MINUTE)
HALF = Split(good_us=MINUTE // 2, bad_us=MINUTE // 2)
BLIND = Split(unknown_us=MINUTE)
OUT = Split(excluded_us=MINUTE)

ONE_RULE = BurnRule(2 * HOUR, 10 * MINUTE, Fraction(3), BurnSeverity.PAGE)


def life(seed: int, minutes: int) -> list[MinuteRun]:
    """Returns runs of minutes, with gaps where no minute is sealed."""
    rnd = random.Random(seed)
    runs: list[MinuteRun] = []
    at = BEGIN
    end = Instant(BEGIN + minutes * MINUTE)
    while at < end:
        until = Instant(min(at + rnd.choice([1, 2, 7, 40, 300, 900]) * MINUTE, end))
        each = rnd.choice([UP, UP, UP, UP, DOWN, HALF, BLIND, OUT])
        if rnd.random() > 0.05:
            runs.append(MinuteRun(TimeSpan(at, until), each, is_seen=rnd.random() > 0.1))
        at = until
    return runs


@st.composite
def documents(draw: st.DrawFn) -> Document:
    mode = draw(st.sampled_from(WindowMode))
    return Document(
        schema_version=2,
        window_mode=mode,
        window=draw(st.sampled_from(["24h", "7d"])) if mode is WindowMode.ONE else None,
        clauses={clause: draw(st.sampled_from(GateClauseAssignment)) for clause in GateClause},
        budget_consumed_percent=draw(st.sampled_from([1, 30, 80])),
        max_seal_lag_seconds=900,
        unknown_behavior=draw(st.sampled_from(UnknownBehavior)),
    )


@st.composite
def pasts(draw: st.DrawFn, minutes: int = 3_000) -> ServicePast:
    aims = [
        ObjectiveSpan(window, objective, burn_enabled, rules)
        for window in draw(st.lists(st.sampled_from(["24h", "7d"]), unique=True))
        for objective in [draw(st.sampled_from([900_000, 990_000]))]
        for burn_enabled in [draw(st.booleans())]
        for rules in [draw(st.sampled_from([(), DEFAULT_RULES, (ONE_RULE,)]))]
    ]
    opened = draw(st.lists(st.integers(0, minutes * MINUTE), max_size=3))
    return ServicePast(
        runs=life(draw(st.integers(0, 10_000)), minutes),
        start=draw(st.sampled_from([None, BEGIN, Instant(BEGIN + 500 * MINUTE)])),
        governed_from=draw(st.sampled_from([None, BEGIN, Instant(BEGIN + 700 * MINUTE + 1)])),
        aims=aims,
        incidents=[TimeSpan(Instant(BEGIN + at), Instant(BEGIN + at + HOUR)) for at in opened],
        deaf=draw(st.sampled_from([None, None, SignalReason.POLICY_PAGES_NOTHING])),
    )


def of_each_minute(
    past: ServicePast, policies: list[tuple[TimeSpan, Document]], within: TimeSpan
) -> list[tuple[Instant, GateState, tuple[str, ...]]]:
    sums = Sums(past.runs)
    found: list[tuple[Instant, GateState, tuple[str, ...]]] = []
    for at in range(within.from_, within.until, MINUTE):
        governing = [d for span, d in policies if span.from_ <= at < span.until]
        if not governing:
            found.append((Instant(at), GateState.NOT_CONFIGURED, ("not_configured",)))
            continue
        said = decide_clauses(governing[0], facts_at(past, sums, Instant(at)))
        codes = [r.code for r in said.reasons if r.assignment is not GateClauseAssignment.IGNORE]
        found.append((Instant(at), said.state, tuple(sorted(set(codes)))))
    return found


def by_minute(said: list[ReplayedSpan]) -> list[tuple[Instant, GateState, tuple[str, ...]]]:
    return [
        (Instant(at), each.state, tuple(sorted(each.reasons)))
        for each in said
        for at in range(each.span.from_, each.span.until, MINUTE)
    ]


@given(pasts(), documents(), documents(), st.integers(0, 3_000), st.integers(0, 3_000))
def test_the_replay_equals_an_evaluation_of_every_minute(
    past: ServicePast, first: Document, second: Document, changed: int, ended: int
) -> None:
    within = TimeSpan(Instant(BEGIN + 200 * MINUTE), Instant(BEGIN + 3_000 * MINUTE))
    change, end = sorted([changed, ended])
    policies = [
        (TimeSpan(BEGIN, Instant(BEGIN + change * MINUTE + 5)), first),
        (TimeSpan(Instant(BEGIN + change * MINUTE + 5), Instant(BEGIN + end * MINUTE + 9)), second),
    ]
    said = [each for each in replay(past, policies, within) if each is not None]
    assert by_minute(said) == of_each_minute(past, policies, within)
    for earlier, later in pairwise(said):
        assert earlier.span.until == later.span.from_
        assert (earlier.state, set(earlier.reasons)) != (later.state, set(later.reasons))


def test_the_order_of_windows_does_not_split_spans() -> None:
    document = Document(
        schema_version=2,
        window_mode=WindowMode.ALL,
        window=None,
        clauses={
            **dict.fromkeys(GateClause, GateClauseAssignment.BLOCK),
            GateClause.SERVICE_INCIDENT_OPEN: GateClauseAssignment.IGNORE,
        },
        budget_consumed_percent=100,
        max_seal_lag_seconds=900,
        unknown_behavior=UnknownBehavior.BLOCK,
    )
    # A gap that only the longer window contains, and then a gap that both contain.
    gaps = [DAY, 5 * DAY]
    edges = [0, gaps[0], gaps[0] + HOUR, gaps[1], gaps[1] + HOUR, 6 * DAY]
    runs = [
        MinuteRun(TimeSpan(Instant(BEGIN + edges[n]), Instant(BEGIN + edges[n + 1])), UP)
        for n in (0, 2, 4)
    ]
    aims = [ObjectiveSpan(window, 990_000, False, ()) for window in ("24h", "7d")]
    past = ServicePast(runs, BEGIN, BEGIN, aims, [])
    within = TimeSpan(Instant(BEGIN + 3 * DAY), Instant(BEGIN + 6 * DAY))
    said = [each for each in replay(past, [(within, document)], within) if each is not None]
    assert said == [ReplayedSpan(within, GateState.UNKNOWN, ("budget_withheld", "never_evaluated"))]


def test_deleted_data_is_unknown_and_not_allowed() -> None:
    blocking = Document(
        schema_version=1,
        window_mode=WindowMode.ONE,
        window="24h",
        clauses={
            **dict.fromkeys(GateClause, GateClauseAssignment.IGNORE),
            GateClause.BUDGET_EXHAUSTED: GateClauseAssignment.BLOCK,
        },
        budget_consumed_percent=100,
        max_seal_lag_seconds=900,
        unknown_behavior=UnknownBehavior.BLOCK,
    )
    day = Instant(BEGIN + DAY)
    runs = [MinuteRun(TimeSpan(day, Instant(day + 2 * DAY)), UP)]
    past = ServicePast(runs, BEGIN, BEGIN, [ObjectiveSpan("24h", 990_000, False, ())], [])
    within = TimeSpan(day, Instant(day + 2 * DAY))
    said = [each for each in replay(past, [(within, blocking)], within) if each is not None]
    gone = TimeSpan(day, Instant(day + DAY))
    assert said[0] == ReplayedSpan(gone, GateState.UNKNOWN, ("budget_withheld",))
    assert [each.state for each in said[1:]] == [GateState.ALLOW]


INCIDENTS = Document(
    schema_version=1,
    window_mode=WindowMode.ONE,
    window="24h",
    clauses={
        **dict.fromkeys(GateClause, GateClauseAssignment.IGNORE),
        GateClause.SERVICE_INCIDENT_OPEN: GateClauseAssignment.BLOCK,
    },
    budget_consumed_percent=100,
    max_seal_lag_seconds=900,
    unknown_behavior=UnknownBehavior.BLOCK,
)


def test_no_incident_during_unknown_health_is_unknown() -> None:
    """While health was unknown or is no longer stored, an incident could have been open
    unnoticed.
    """
    lengths = [
        (10, MinuteRun, UP),
        (5, MinuteRun, BLIND),
        (5, None, UP),
        (5, MinuteRun, OUT),
        (5, MinuteRun, HALF),
    ]
    runs, at = [], BEGIN
    for minutes, is_kept, each in lengths:
        until = Instant(at + minutes * MINUTE)
        runs += [MinuteRun(TimeSpan(at, until), each)] if is_kept else []
        at = until
    # The health was unknown, although both possible states are good.
    runs.append(MinuteRun(TimeSpan(at, Instant(at + 5 * MINUTE)), UP, is_seen=False))
    past = ServicePast(
        runs, BEGIN, BEGIN, [], [TimeSpan(Instant(BEGIN + 12 * MINUTE), Instant(at))]
    )
    within = TimeSpan(Instant(BEGIN + MINUTE), Instant(at + 6 * MINUTE))
    for incidents, states in (
        ([], [(1, "ALLOW"), (11, "UNKNOWN"), (21, "ALLOW"), (31, "UNKNOWN")]),
        (past.incidents, [(1, "ALLOW"), (11, "UNKNOWN"), (12, "BLOCK"), (30, "ALLOW")]),
    ):
        found = replay(replace(past, incidents=incidents), [(within, INCIDENTS)], within)
        said = [((s.span.from_ - BEGIN) // MINUTE, s.state.value) for s in found if s is not None]
        assert said[: len(states)] == states
        assert said[-1] == (31, "UNKNOWN")


def test_a_service_without_sealed_minutes_is_unknown() -> None:
    past = ServicePast([], None, BEGIN, [], [])
    within = TimeSpan(BEGIN, Instant(BEGIN + DAY))
    said = [each for each in replay(past, [(within, INCIDENTS)], within) if each is not None]
    assert said == [ReplayedSpan(within, GateState.UNKNOWN, ("facts_stale",))]


def test_nothing_is_measured_at_the_start_of_a_service() -> None:
    runs = [MinuteRun(TimeSpan(BEGIN, Instant(BEGIN + HOUR)), UP)]
    past = ServicePast(runs, BEGIN, BEGIN, [ObjectiveSpan("24h", 990_000, True, (ONE_RULE,))], [])
    (window,) = facts_at(past, Sums(runs), BEGIN).windows
    assert window.withheld is Withheld.NOTHING_MEASURED
    assert (window.good_us, window.bad_us, window.unknown_us, window.excluded_us) == (0, 0, 0, 0)
    (window,) = facts_at(past, Sums(runs), Instant(BEGIN + MINUTE)).windows
    assert (window.withheld, window.good_us) == (None, MINUTE)


def test_equal_burn_ranges_of_two_windows_give_equal_results() -> None:
    document = Document(
        schema_version=2,
        window_mode=WindowMode.ALL,
        window=None,
        clauses=dict.fromkeys(GateClause, GateClauseAssignment.BLOCK),
        budget_consumed_percent=80,
        max_seal_lag_seconds=900,
        unknown_behavior=UnknownBehavior.BLOCK,
    )
    aims = [ObjectiveSpan(window, 990_000, True, (ONE_RULE,)) for window in ("24h", "7d")]
    past = ServicePast(life(1, 3_000), BEGIN, BEGIN, aims, [])
    within = TimeSpan(Instant(BEGIN + 200 * MINUTE), Instant(BEGIN + 3_000 * MINUTE))
    said = [each for each in replay(past, [(within, document)], within) if each is not None]
    assert by_minute(said) == of_each_minute(past, [(within, document)], within)


@given(pasts(), documents(), st.integers(0, 3_000), st.integers(0, 12), st.booleans())
@settings(max_examples=examples(400), deadline=None)
def test_a_decision_and_its_minute_agree_or_the_reason_is_the_seal_lag(
    past: ServicePast, document: Document, minutes: int, lag: int, repaired: bool
) -> None:
    """The decision was made with the sealed time of its instant, and the replay has all of it."""
    at = Instant(BEGIN + minutes * MINUTE + 17)
    minute = Instant(at - at % MINUTE)
    sealed = Instant(minute - lag * MINUTE)
    then = replace(past, runs=cut(past.runs, sealed))
    if repaired:
        # Late data changed the time before.
        past = replace(past, runs=[replace(run, each=DOWN) for run in past.runs])
    facts = facts_at(then, Sums(then.runs), sealed)
    facts = structs.replace(
        facts,
        at=at,
        live=structs.replace(facts.live, evaluated_at=at),
        burn=structs.replace(facts.burn, evaluated_at=at),
        open_incidents=facts_at(then, Sums(then.runs), minute).open_incidents,
    )
    sums = Sums(past.runs)
    state = decide_clauses(document, facts).state
    replayed = decide_clauses(document, facts_at(past, sums, minute)).state
    found = hindsight(past, sums, (document, facts, state), (document, minute))
    if state is replayed:
        assert found is None
    elif repaired:
        assert found in (Hindsight.SEAL_LAG, Hindsight.FACTS)
    else:
        assert found is Hindsight.SEAL_LAG


def cut(runs: Sequence[MinuteRun], until: Instant) -> list[MinuteRun]:
    return [
        replace(run, span=TimeSpan(run.span.from_, min(run.span.until, until)))
        for run in runs
        if run.span.from_ < until
    ]


@given(pasts(), documents(), documents(), st.integers(0, 3_000))
def test_a_policy_that_changed_within_the_minute_is_the_reason(
    past: ServicePast, before: Document, after: Document, minutes: int
) -> None:
    minute = Instant(BEGIN + minutes * MINUTE)
    sums = Sums(past.runs)
    facts = facts_at(past, sums, minute)
    state = decide_clauses(before, facts).state
    same = state is decide_clauses(after, facts).state
    found = hindsight(past, sums, (before, facts, state), (after, minute))
    assert found is (None if same else Hindsight.POLICY)
