"""Every combination of the gate's decision table, compared with a model that follows the
specification.
"""

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.storage.gate.rules.gate import (
    Finding,
    GateAction,
    GateClause,
    GateClauseAssignment,
    GateState,
    UnavailableReason,
    UnknownBehavior,
    decide,
    overridden,
)
from tests.support.run.effort import examples

CLAUSES = list(GateClause)
VERDICTS = (True, False, None)


def by_the_text(
    assigned: tuple[GateClauseAssignment, ...],
    verdicts: tuple[bool | None, ...],
    unknown_behavior: UnknownBehavior,
    is_overridden: bool,
) -> tuple[str, str]:
    """Returns (state, action), one branch for each sentence of the specification."""
    pairs = list(zip(assigned, verdicts, strict=True))
    if ("block", True) in pairs:
        state, action = "BLOCK", "BLOCK"
    elif ("block", None) in pairs or ("warn", None) in pairs:
        state, action = "UNKNOWN", unknown_behavior.upper()
    elif ("warn", True) in pairs:
        state, action = "WARN", "WARN"
    else:
        state, action = "ALLOW", "ALLOW"
    if is_overridden and action == "BLOCK":
        action = "ALLOW"
    return state, action


def finding(clause: GateClause, matches: bool | None, window: str | None = None) -> Finding:
    why = UnavailableReason.BUDGET_WITHHELD if matches is None else None
    return Finding(clause, matches, why, window)


def test_every_combination_matches_the_model() -> None:
    assignments = list(product(GateClauseAssignment, repeat=len(CLAUSES)))
    for verdicts in product(VERDICTS, repeat=len(CLAUSES)):
        findings = [finding(c, v) for c, v in zip(CLAUSES, verdicts, strict=True)]
        for assigned in assignments:
            clauses = dict(zip(CLAUSES, assigned, strict=True))
            for behavior in UnknownBehavior:
                said = decide(clauses, findings, behavior)
                for is_overridden in (False, True):
                    done = overridden(said.action, is_overridden=is_overridden)
                    assert (said.state, done) == by_the_text(
                        assigned, verdicts, behavior, is_overridden
                    )


_FOUND = st.lists(
    st.tuples(
        st.sampled_from(CLAUSES), st.sampled_from(VERDICTS), st.sampled_from([None, "24h", "90d"])
    ),
    max_size=12,
)
_POLICY = st.fixed_dictionaries(dict.fromkeys(CLAUSES, st.sampled_from(GateClauseAssignment)))


@given(_POLICY, _FOUND, st.sampled_from(UnknownBehavior))
@settings(max_examples=examples(500), deadline=None)
def test_the_worst_window_decides_and_a_missing_finding_never_allows(
    clauses: dict[GateClause, GateClauseAssignment],
    found: list[tuple[GateClause, bool | None, str | None]],
    behavior: UnknownBehavior,
) -> None:
    said = decide(clauses, [finding(*each) for each in found], behavior)
    told = {(clause, verdict) for clause, verdict, _ in found}
    silent = {clause for clause in CLAUSES if clause not in {c for c, _ in told}}
    matters = {clause for clause in CLAUSES if clauses[clause] != "ignore"}
    if any((clause, True) in told and clauses[clause] == "block" for clause in CLAUSES):
        assert said.state is GateState.BLOCK
    elif silent & matters or any((clause, None) in told for clause in matters):
        assert said.state is GateState.UNKNOWN
        assert said.action is not GateAction.ALLOW
    else:
        assert said.state in (GateState.WARN, GateState.ALLOW)


@given(_POLICY, _FOUND, st.sampled_from(UnknownBehavior))
def test_each_matching_or_unknown_finding_is_a_reason(
    clauses: dict[GateClause, GateClauseAssignment],
    found: list[tuple[GateClause, bool | None, str | None]],
    behavior: UnknownBehavior,
) -> None:
    findings = [finding(*each) for each in found]
    reasons = decide(clauses, findings, behavior).reasons
    given_ = [reason.finding for reason in reasons if reason.finding in findings]
    assert given_ == [each for each in findings if each.matches is not False]
    unasked = set(CLAUSES) - {each.clause for each in findings}
    assert {r.finding.clause for r in reasons if r.code == "never_evaluated"} == unasked
    for reason in reasons:
        assert reason.assignment is clauses[reason.finding.clause]
        if reason.finding.matches:
            assert reason.code == reason.finding.clause.value
