"""JSON of gate policies and decisions.

Invariant: the JSON of a decision depends on its row and its evidence only, so that it never
changes.
"""

from collections.abc import Sequence

import msgspec

from ....storage.core.availability import OBJECTIVE_SCALE, ErrorBudget, percent
from ....storage.core.instant import SECOND, to_text
from ....storage.core.sli import Split
from ....storage.gate.rows import DecisionRow, GateOverrideRow, GatePolicyRow
from ....storage.gate.rules.gate import GateClause
from ....storage.gate.rules.gate_evidence import (
    Evidence,
    GateFacts,
    OverrideFacts,
    RuleFacts,
    SignalFacts,
    StoredReason,
    WindowFacts,
    is_fresh,
)
from ....storage.gate.rules.gate_freshness import fresh_until, looked_at
from ....storage.gate.rules.gate_override import OverrideStatus
from ....storage.gate.rules.gate_policy import Document, WindowMode
from ...wire.errors import Problem
from ...wire.schema import given, instant_text, known
from ..schemas import (
    GateBurnLease,
    GateClauses,
    GateCoverageSignal,
    GateCoverageState,
    GateDecision,
    GateDecisionSummary,
    GateFactRevisions,
    GateGoverningRevision,
    GateOverride,
    GateOverrideApplied,
    GateOverrideRecord,
    GatePolicy,
    GatePolicyWrite,
    GateReason,
    GateWindowEvidence,
)


def document_of(body: GatePolicyWrite) -> Document:
    """Returns the document of a request. Raises Problem if a required part is absent."""
    mode = given(body.window_mode)
    if mode is None and body.schema_version != 1:
        raise Problem("window_mode: is required in schema 2")
    clauses = body.clauses
    return Document(
        schema_version=body.schema_version,
        window_mode=WindowMode.ONE if mode is None else mode,
        window=given(body.window),
        clauses={clause: getattr(clauses, clause.value) for clause in GateClause},
        budget_consumed_percent=body.budget_consumed_percent,
        max_seal_lag_seconds=body.max_seal_lag_seconds,
        unknown_behavior=body.unknown_behavior,
    )


def policy_json(row: GatePolicyRow) -> GatePolicy:
    document = row.document
    return GatePolicy(
        schema_version=document.schema_version,
        # Clients of schema 1 do not know window modes.
        window_mode=known(document.window_mode if document.schema_version > 1 else None),
        window=known(document.window),  # type: ignore[arg-type]
        clauses=GateClauses(
            **{clause.value: assignment for clause, assignment in document.clauses.items()}
        ),
        budget_consumed_percent=document.budget_consumed_percent,
        max_seal_lag_seconds=document.max_seal_lag_seconds,
        unknown_behavior=document.unknown_behavior,
        revision=row.revision,
        updated_at=to_text(row.began_at),
        updated_by=row.author_label,
        policy_source=row.source,
        policy_owner_id=row.owner,
    )


def override_json(row: GateOverrideRow) -> GateOverride:
    return GateOverride(
        id=row.uid,
        reason=row.reason,
        expires_at=to_text(row.expires_at),
        created_at=to_text(row.created_at),
        actor_label=row.actor_label,
        policy_revision=row.policy_revision,
    )


def record_json(row: GateOverrideRow, status: OverrideStatus) -> GateOverrideRecord:
    return GateOverrideRecord(
        id=row.uid,
        reason=row.reason,
        expires_at=to_text(row.expires_at),
        created_at=to_text(row.created_at),
        policy_revision=row.policy_revision,
        actor_label=row.actor_label,
        actor_user_id=row.actor_user,
        via_token=row.via_token,
        status=status,
        revoked_at=None if row.revoked_at is None else to_text(row.revoked_at),
        revoked_reason=row.revoked_reason,
        revoked_by_label=row.revoked_by_label,
        revoked_by_user_id=row.revoked_by_user,
        revoked_via_token=row.revoked_via_token,
    )


def summary_json(row: DecisionRow) -> GateDecisionSummary:
    return GateDecisionSummary(
        schema_version=row.schema_version,
        decision_id=row.uid,
        evaluated_at=to_text(row.evaluated_at),
        service_id=row.service_uid,
        service_slug=row.service_slug,
        service_name=row.service_name,
        state=row.state,
        action=known(row.action),
        reasons=_reasons(row.reasons),
        policy_revision=known(row.policy_revision),
        override_id=known(row.override_uid),
    )


def decision_json(row: DecisionRow, evidence: Evidence) -> GateDecision:
    facts, governing = evidence.facts, evidence.policy
    document = None if governing is None else governing.document
    one = _the_one_window(document, facts)
    windows = looked_at(document, facts)
    lag_us = facts.seal_lag_us
    return GateDecision(
        **msgspec.structs.asdict(summary_json(row)),
        actor_label=row.actor_label,
        unoverridden_action=known(row.unoverridden_action),
        policy_source=known(None if governing is None else governing.source),
        policy_owner_id=known(None if governing is None else governing.owner),
        window_mode=known(None if document is None else document.window_mode),
        window=known(None if document is None else document.window),  # type: ignore[arg-type]
        unknown_behavior=known(None if document is None else document.unknown_behavior),
        max_seal_lag_seconds=known(None if document is None else document.max_seal_lag_seconds),
        override=known(_override(evidence.override)),
        target_id=known(None if one is None else one.target),
        objective=known(None if one is None else one.objective / OBJECTIVE_SCALE),
        objective_updated_at=instant_text(None if one is None else one.objective_updated_at),
        sealed_through=instant_text(facts.sealed_through),
        seal_lag=known(None if lag_us is None else lag_us / SECOND),
        fact_revisions=_fact_revisions(facts),
        governing_revision=known(_governing(facts)),
        burn_leases=[_lease(rule, facts) for window in windows for rule in window.rules],
        coverage_lease_until=instant_text(facts.live.lease_until),
        coverage_state=GateCoverageState(live=_signal(facts.live), burn=_signal(facts.burn)),
        facts_fresh_until=instant_text(None if document is None else fresh_until(document, facts)),
        evidence=[_window(window, facts) for window in windows],
    )


def _the_one_window(document: Document | None, facts: GateFacts) -> WindowFacts | None:
    """Returns the window of a policy with one window, None if it has no objective."""
    if document is None or document.window_mode is not WindowMode.ONE:
        return None
    return next(iter(looked_at(document, facts)), None)


def _reasons(reasons: Sequence[StoredReason]) -> list[GateReason]:
    return [
        GateReason(
            code=reason.code,
            clause=known(reason.clause),
            assignment=known(reason.assignment),
            value=known(reason.value),
            window=known(reason.window),
        )
        for reason in reasons
    ]


def _override(override: OverrideFacts | None) -> GateOverrideApplied | None:
    if override is None:
        return None
    return GateOverrideApplied(
        id=override.uid,
        actor_label=override.actor_label,
        reason=override.reason,
        expires_at=to_text(override.expires_at),
    )


def _fact_revisions(facts: GateFacts) -> GateFactRevisions:
    of = facts.fact_revisions
    return GateFactRevisions(
        count=of.count, first_id=of.first_id, last_id=of.last_id, digest=of.digest
    )


def _governing(facts: GateFacts) -> GateGoverningRevision | None:
    of = facts.governing
    return None if of is None else GateGoverningRevision(id=of.uid, revision=of.revision)


def _signal(signal: SignalFacts) -> GateCoverageSignal:
    return GateCoverageSignal(armed=signal.armed, reason=known(signal.reason))


def _lease(rule: RuleFacts, facts: GateFacts) -> GateBurnLease:
    looked = rule.evaluated_at is not None
    return GateBurnLease(
        rule_key=rule.key,
        severity=rule.severity.value,
        firing=rule.firing if looked else None,
        last_verdict=None if rule.last_verdict is None else rule.last_verdict.value,
        evaluated_at=None if rule.evaluated_at is None else to_text(rule.evaluated_at),
        lease_until=None if rule.lease_until is None else to_text(rule.lease_until),
        fresh=is_fresh(rule, facts),
    )


def _window(window: WindowFacts, facts: GateFacts) -> GateWindowEvidence:
    split = Split(window.good_us, window.bad_us, window.unknown_us, window.excluded_us)
    # A withheld sum has no availability either.
    availability = split.availability() if window.withheld is None else None
    budget = window.budget
    return GateWindowEvidence(
        window=window.window,  # type: ignore[arg-type]
        target_id=window.target,
        objective=window.objective / OBJECTIVE_SCALE,
        from_=to_text(window.from_at),
        to=to_text(window.to_at),
        good_seconds=split.good_us / SECOND,
        bad_seconds=split.bad_us / SECOND,
        unknown_seconds=split.unknown_us / SECOND,
        excluded_seconds=split.excluded_us / SECOND,
        availability=known(None if availability is None else percent(availability)),
        burned_percent=known(budget.burned_percent if isinstance(budget, ErrorBudget) else None),
        withheld=known(None if isinstance(budget, ErrorBudget) else budget),
        rules=[_lease(rule, facts) for rule in window.rules],
    )
