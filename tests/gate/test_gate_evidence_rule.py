"""The findings of the gate from its facts, compared with a model of the specification; missing
facts never allow.
"""

from dataclasses import dataclass
from fractions import Fraction
from uuid import UUID

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from leadline.storage.alerting.rules.alert_episode import ServiceCondition
from leadline.storage.alerting.rules.paging_delegation import SignalReason
from leadline.storage.core.availability import Withheld
from leadline.storage.core.instant import HOUR, SECOND, Instant
from leadline.storage.gate.rules.gate import (
    GateAction,
    GateClause,
    GateClauseAssignment,
    GateState,
    UnknownBehavior,
)
from leadline.storage.gate.rules.gate_evidence import (
    Evidence,
    FactRevisions,
    GateFacts,
    GoverningRevision,
    OverrideFacts,
    RuleFacts,
    SignalFacts,
    WindowFacts,
    evaluate_policy,
    findings,
)
from leadline.storage.gate.rules.gate_policy import (
    Document,
    Governing,
    PolicySource,
    WindowMode,
    fault,
    least_seal_lag_seconds,
)
from leadline.storage.objectives.rules import BurnSeverity, BurnState

NOW = Instant(1_790_000_000 * SECOND)
WINDOWS = ("24h", "7d", "30d", "90d")
UID = UUID(int=7)
BUDGET = (GateClause.BUDGET_EXHAUSTED, GateClause.BUDGET_CONSUMED)

ages = st.sampled_from([-86_400, -91, -90, 0, 1, 89, 90, 91, 300, 301, 600, 601, 86_401]).map(
    lambda seconds: Instant(NOW - seconds * SECOND)
)
near = st.one_of(st.none(), ages)
rules = st.builds(
    RuleFacts,
    key=st.just("30d page 1h/5m 14.4"),
    severity=st.sampled_from(BurnSeverity),
    firing=st.booleans(),
    last_verdict=st.one_of(st.none(), st.sampled_from(BurnState)),
    evaluated_at=near,
    lease_until=st.none(),
)


@st.composite
def splits(draw: st.DrawFn) -> dict[str, int]:
    measured = draw(st.sampled_from([0, HOUR - 1, HOUR, 100 * HOUR]))
    bad = min(draw(st.sampled_from([0, 1, HOUR // 1_000, HOUR // 10, HOUR, 50 * HOUR])), measured)
    unknown = draw(st.sampled_from([0, HOUR // 10, 12 * HOUR]))
    return {"good_us": measured - bad, "bad_us": bad, "unknown_us": unknown, "excluded_us": 0}


@st.composite
def windows(draw: st.DrawFn, name: str) -> WindowFacts:
    return WindowFacts(
        window=name,
        target=UID,
        objective=draw(st.sampled_from([900_000, 990_000, 999_000])),
        objective_updated_at=NOW,
        from_at=Instant(NOW - HOUR),
        to_at=NOW,
        **draw(splits()),
        withheld=draw(st.sampled_from([None, None, None, Withheld.STORAGE_GAP])),
        repair_since=draw(near),
        burn_enabled=draw(st.sampled_from([True, True, False])),
        rules=draw(st.lists(rules, max_size=3)),
    )


@st.composite
def signals(draw: st.DrawFn) -> SignalFacts:
    reason = draw(st.one_of(st.none(), st.sampled_from(SignalReason)))
    return SignalFacts(
        armed=reason is None, reason=reason, evaluated_at=draw(near), lease_until=None
    )


@st.composite
def some_facts(draw: st.DrawFn) -> GateFacts:
    names = draw(st.lists(st.sampled_from(WINDOWS), unique=True, max_size=3))
    governed = draw(st.sampled_from([True, True, True, False]))
    return GateFacts(
        at=NOW,
        governing=GoverningRevision(UID, 1) if governed else None,
        sealed_through=draw(near),
        windows=[draw(windows(name)) for name in sorted(names, key=WINDOWS.index)],
        fact_revisions=FactRevisions(0, None, None, ""),
        seen=draw(st.one_of(st.none(), st.sampled_from(ServiceCondition))),
        live=draw(signals()),
        burn=draw(signals()),
        open_incidents=draw(st.sampled_from([[], [], [UID]])),
    )


@st.composite
def documents(draw: st.DrawFn) -> Document:
    mode = draw(st.sampled_from(WindowMode))
    one = mode is WindowMode.ONE
    return Document(
        schema_version=1 if one and draw(st.booleans()) else 2,
        window_mode=mode,
        window=draw(st.sampled_from(WINDOWS)) if one else None,
        clauses={clause: draw(st.sampled_from(GateClauseAssignment)) for clause in GateClause},
        budget_consumed_percent=draw(st.sampled_from([1, 50, 100])),
        max_seal_lag_seconds=draw(st.sampled_from([300, 600])),
        unknown_behavior=draw(st.sampled_from(UnknownBehavior)),
    )


@dataclass(frozen=True)
class Expected:
    """The result of a clause over a window by the specification: whether it matches, or why it is
    unknown.
    """

    clause: str
    window: str | None
    verdict: bool | str


def by_the_text(policy: Document, facts: GateFacts) -> list[Expected]:
    wanted: list[str | None] = (
        [policy.window] if policy.window_mode == "one" else [w.window for w in facts.windows]
    ) or [None]
    said = []
    for name in wanted:
        window = next((w for w in facts.windows if w.window == name), None)
        said += [
            Expected(clause.value, name, budget_by_the_text(clause, policy, facts, window))
            for clause in BUDGET
        ]
        for severity in ("page", "ticket"):
            verdict = burn_by_the_text(severity, policy, facts, window)
            said.append(Expected(f"{severity}_burn_firing", name, verdict))
    said.append(Expected("service_incident_open", None, incident_by_the_text(facts)))
    return said


def unreadable(policy: Document, facts: GateFacts, window: WindowFacts | None) -> str | None:
    if facts.governing is None:
        return "no_governing_revision"
    if window is None:
        return "window_target_missing" if facts.windows else "no_objective"
    if facts.sealed_through is None:
        return "never_sealed"
    if facts.at - facts.sealed_through > policy.max_seal_lag_seconds * 1_000_000:
        return "seal_stale"
    if facts.sealed_through - facts.at > 90_000_000:
        return "seal_stale"
    since = window.repair_since
    if since is not None and facts.at - since > policy.max_seal_lag_seconds * 1_000_000:
        return "facts_stale"
    return None


def budget_by_the_text(
    clause: GateClause, policy: Document, facts: GateFacts, window: WindowFacts | None
) -> bool | str:
    why = unreadable(policy, facts, window)
    if why is not None:
        return why
    assert window is not None
    measured = window.good_us + window.bad_us
    seen = measured + window.unknown_us
    # A budget needs one measured hour, and 90 % coverage of the time that is not excluded.
    if window.withheld or measured < 3_600_000_000 or 10 * measured < 9 * seen:
        return "budget_withheld"
    allowed = Fraction(measured * (1_000_000 - window.objective), 1_000_000)
    percent = 100 if clause is GateClause.BUDGET_EXHAUSTED else policy.budget_consumed_percent
    return Fraction(100 * window.bad_us) >= percent * allowed


def burn_by_the_text(
    severity: str, policy: Document, facts: GateFacts, window: WindowFacts | None
) -> bool | str:
    mine = [] if window is None else [r for r in window.rules if r.severity == severity]
    watched = window is not None and window.burn_enabled and mine
    lately = [r for r in mine if r.evaluated_at and abs(facts.at - r.evaluated_at) <= 90_000_000]
    if watched and any(r.firing for r in lately):
        return True
    if facts.governing is None:
        return "no_governing_revision"
    if window is None:
        return "window_target_missing" if facts.windows else "no_objective"
    if not watched:
        return "never_evaluated"
    for rule in mine:
        if rule.evaluated_at is None:
            return "never_evaluated"
        if rule not in lately:
            return "facts_stale"
        if rule.last_verdict != "clear":
            return "budget_withheld"
    return unreadable(policy, facts, window) or False


def incident_by_the_text(facts: GateFacts) -> bool | str:
    if facts.open_incidents:
        return True
    if facts.governing is None:
        return "no_governing_revision"
    off = {
        "no_owning_service",
        "policy_pages_nothing",
        "never_evaluated",
        "no_enabled_target",
        "unroutable",
    }
    old = {
        "generation_changed",
        "revision_changed",
        "evaluation_error",
        "stale_lease",
        "latch_inconsistent",
    }
    reason = facts.live.reason
    if reason == "no_governing_revision":
        return "no_governing_revision"
    if reason in off or (reason not in old and facts.live.evaluated_at is None):
        return "never_evaluated"
    if reason in old:
        return "facts_stale"
    assert facts.live.evaluated_at is not None
    if facts.seen == "unknown" or abs(facts.at - facts.live.evaluated_at) > 90_000_000:
        return "facts_stale"
    return False


@given(documents(), some_facts())
def test_each_clause_matches_the_model(policy: Document, facts: GateFacts) -> None:
    found = [
        Expected(
            each.clause,
            each.window,
            each.unavailable.value if each.unavailable else bool(each.matches),
        )
        for each in findings(policy, facts)
    ]
    assert sorted(found, key=repr) == sorted(by_the_text(policy, facts), key=repr)
    assert all(
        (each.matches is None) == (each.unavailable is not None) for each in findings(policy, facts)
    )


def governed(document: Document) -> Governing:
    return Governing(source=PolicySource.SERVICE, owner=UID, revision=3, document=document)


OVERRIDE = OverrideFacts(uid=UID, actor_label="ops", reason="a fix", expires_at=NOW)


@given(documents(), some_facts(), st.sampled_from([None, OVERRIDE]))
def test_stored_evidence_gives_the_same_decision(
    document: Document, facts: GateFacts, override: OverrideFacts | None
) -> None:
    evidence = Evidence(policy=governed(document), facts=facts, override=override)
    kept = msgspec.json.encode(evidence)
    read = msgspec.json.decode(kept, type=Evidence)
    assert read == evidence
    assert evaluate_policy(read) == evaluate_policy(evidence)
    assert msgspec.json.encode(read) == kept


@given(documents(), some_facts())
def test_allow_needs_a_known_result_of_each_counted_clause(
    document: Document, facts: GateFacts
) -> None:
    said = evaluate_policy(Evidence(policy=governed(document), facts=facts, override=None))
    if said.state is GateState.ALLOW:
        for each in by_the_text(document, facts):
            ignored = document.clauses[GateClause(each.clause)] is GateClauseAssignment.IGNORE
            assert ignored or each.verdict is False


@given(documents(), some_facts(), st.data())
def test_a_missing_fact_never_makes_the_action_more_permissive(
    document: Document, facts: GateFacts, data: st.DataObject
) -> None:
    """One of the facts is removed. With unknown_behavior BLOCK the action is at most as permissive
    as before.
    """
    document = replace(document, unknown_behavior=UnknownBehavior.BLOCK)
    before = evaluate_policy(Evidence(policy=governed(document), facts=facts, override=None))
    lost = [
        replace(facts, governing=None),
        replace(facts, sealed_through=None),
        replace(facts, live=replace(facts.live, evaluated_at=None, reason=None, armed=True)),
    ]
    for place, window in enumerate(facts.windows):
        for less in (
            replace(window, withheld=Withheld.STORAGE_GAP),
            replace(window, burn_enabled=False, rules=[]),
        ):
            others = [*facts.windows]
            others[place] = less
            lost.append(replace(facts, windows=others))
    if document.window_mode is WindowMode.ONE:
        lost.append(replace(facts, windows=[]))
    after = evaluate_policy(
        Evidence(policy=governed(document), facts=data.draw(st.sampled_from(lost)), override=None)
    )
    assume(before.state is not GateState.BLOCK)
    order = [GateAction.ALLOW, GateAction.WARN, GateAction.BLOCK]
    assert before.action is not None
    assert after.action is not None
    assert order.index(after.action) >= order.index(before.action)


@given(documents(), some_facts())
def test_an_override_changes_only_the_action(document: Document, facts: GateFacts) -> None:
    without = evaluate_policy(Evidence(policy=governed(document), facts=facts, override=None))
    under = evaluate_policy(Evidence(policy=governed(document), facts=facts, override=OVERRIDE))
    assert (under.state, under.reasons) == (without.state, without.reasons)
    assert under.unoverridden_action == without.action
    assert under.action == (
        GateAction.ALLOW if without.action is GateAction.BLOCK else without.action
    )


@given(some_facts(), st.sampled_from([None, OVERRIDE]))
def test_without_a_policy_the_state_is_not_configured(
    facts: GateFacts, override: OverrideFacts | None
) -> None:
    said = evaluate_policy(Evidence(policy=None, facts=facts, override=override))
    assert (said.state, said.action, said.unoverridden_action) == (
        GateState.NOT_CONFIGURED,
        None,
        None,
    )
    assert [each.code for each in said.reasons] == ["not_configured"]


GOOD = Document(
    schema_version=2,
    window_mode=WindowMode.ONE,
    window="30d",
    clauses=dict.fromkeys(GateClause, GateClauseAssignment.BLOCK),
    budget_consumed_percent=80,
    max_seal_lag_seconds=900,
    unknown_behavior=UnknownBehavior.BLOCK,
)


@pytest.mark.parametrize(
    ("document", "field"),
    [
        (GOOD, None),
        (replace(GOOD, schema_version=1), None),
        (replace(GOOD, window_mode=WindowMode.ALL, window=None), None),
        (replace(GOOD, schema_version=1, window_mode=WindowMode.ALL, window=None), "window_mode"),
        (replace(GOOD, window=None), "window"),
        (replace(GOOD, window_mode=WindowMode.ALL), "window"),
        (
            replace(GOOD, clauses={GateClause.BUDGET_EXHAUSTED: GateClauseAssignment.BLOCK}),
            "clauses.budget_consumed",
        ),
    ],
)
def test_a_fault_of_a_policy_names_its_field(document: Document, field: str | None) -> None:
    found = fault(document)
    assert (found[0] if found else None) == field


def test_the_minimum_seal_lag() -> None:
    # Two minutes for late results, the minute itself, and the longest run.
    assert least_seal_lag_seconds(60) == 240
