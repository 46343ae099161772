"""Evidence of a gate decision, and the findings that follow from it alone.

Invariants: equal facts and an equal policy give the same decision at any time, so that a stored
decision can be recomputed. A clause is found not to match only if this is known: the figure exists
and is recent and complete, or a recent evaluation could have detected the match. A known match
counts regardless of missing data.
"""

from collections.abc import Iterator
from fractions import Fraction
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from ...alerting.rules.alert_episode import ServiceCondition
from ...alerting.rules.paging_delegation import SignalReason
from ...core.availability import WHOLE, ErrorBudget, Withheld, budget
from ...core.instant import SECOND, Instant
from ...core.sli import Split
from ...objectives.rules import BurnSeverity, BurnState
from .gate import (
    NOT_CONFIGURED,
    Finding,
    GateAction,
    GateClause,
    GateClauseAssignment,
    GateOutcome,
    GateState,
    UnavailableReason,
    decide,
    overridden,
)
from .gate_policy import Document, Governing, WindowMode

# Validity of an evaluator's result.
LATCH_US: Final = 90 * SECOND


class RuleFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Burn rule and its last evaluation. `key` contains its ranges and threshold."""

    key: str
    severity: BurnSeverity
    firing: bool
    last_verdict: BurnState | None
    evaluated_at: Instant | None
    lease_until: Instant | None


class WindowFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Sealed facts of a window with an objective (× 10⁴).

    `withheld` is the reason why sums are withheld; `repair_since` the creation of the oldest
    pending repair.
    """

    window: str
    target: UUID
    objective: int
    objective_updated_at: Instant
    from_at: Instant
    to_at: Instant
    good_us: int
    bad_us: int
    unknown_us: int
    excluded_us: int
    withheld: Withheld | None
    repair_since: Instant | None
    burn_enabled: bool
    rules: list[RuleFacts]

    @property
    def budget(self) -> ErrorBudget | Withheld:
        return self.withheld or budget(self._split, self.objective)

    def has_burned(self, percent: int) -> bool:
        """Returns whether the given share of the budget is used, exactly. Requires a budget."""
        split = self._split
        actual = Fraction(split.bad_us, split.measured_us)
        return 100 * actual >= percent * Fraction(WHOLE - self.objective, WHOLE)

    @property
    def _split(self) -> Split:
        return Split(self.good_us, self.bad_us, self.unknown_us, self.excluded_us)


class SignalFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Paging state of the service, live or burn; `reason` if it is not armed."""

    armed: bool
    reason: SignalReason | None
    evaluated_at: Instant | None
    lease_until: Instant | None


class GoverningRevision(msgspec.Struct, frozen=True):
    uid: UUID
    revision: int


class FactRevisions(msgspec.Struct, frozen=True):
    """Epochs of the figures, by number. `digest` covers the epochs and their sums."""

    count: int
    first_id: UUID | None
    last_id: UUID | None
    digest: str


class GateFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about a service at one instant.

    `windows` are those with an objective, shortest first. `seen` is the condition at the last
    evaluation.
    """

    at: Instant
    governing: GoverningRevision | None
    sealed_through: Instant | None
    windows: list[WindowFacts]
    fact_revisions: FactRevisions
    seen: ServiceCondition | None
    live: SignalFacts
    burn: SignalFacts
    open_incidents: list[UUID]

    @property
    def seal_lag_us(self) -> int | None:
        return None if self.sealed_through is None else self.at - self.sealed_through


class OverrideFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Override that was active at the decision."""

    uid: UUID
    actor_label: str
    reason: str
    expires_at: Instant


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """Complete input of a decision."""

    policy: Governing | None
    facts: GateFacts
    override: OverrideFacts | None


class StoredReason(msgspec.Struct, frozen=True, omit_defaults=True):
    """Reason in its stored and public form."""

    code: str
    clause: GateClause | None = None
    assignment: GateClauseAssignment | None = None
    value: float | str | None = None
    window: str | None = None


class GateResult(NamedTuple):
    """Result of the gate. `action` takes an active override into account."""

    state: GateState
    action: GateAction | None
    unoverridden_action: GateAction | None
    reasons: tuple[StoredReason, ...]


def evaluate_policy(evidence: Evidence) -> GateResult:
    """Returns the result for the evidence, independent of the present time."""
    policy = evidence.policy
    decision = decide_clauses(None if policy is None else policy.document, evidence.facts)
    action = overridden(decision.action, is_overridden=evidence.override is not None)
    return GateResult(decision.state, action, decision.action, _stored_reason(decision))


def decide_clauses(policy: Document | None, facts: GateFacts) -> GateOutcome:
    """Returns the outcome before any override; not configured without a policy."""
    if policy is None:
        return NOT_CONFIGURED
    return decide(policy.clauses, list(findings(policy, facts)), policy.unknown_behavior)


def findings(policy: Document, facts: GateFacts) -> Iterator[Finding]:
    """Yields the findings of every clause over each window of the policy."""
    for window, missing in _windows(policy, facts):
        yield from _of_budget(policy, facts, window, missing)
        for severity, clause in _BURNS:
            yield _of_burn(policy, facts, window, missing, severity, clause)
    yield _of_incident(facts)


_BURNS: Final = (
    (BurnSeverity.PAGE, GateClause.PAGE_BURN_FIRING),
    (BurnSeverity.TICKET, GateClause.TICKET_BURN_FIRING),
)

_Missing = tuple[str | None, UnavailableReason]


def _windows(
    policy: Document, facts: GateFacts
) -> Iterator[tuple[WindowFacts, None] | tuple[None, _Missing]]:
    """Yields the windows of the policy, or the missing window and the reason."""
    if policy.window_mode is WindowMode.ALL:
        for window in facts.windows:
            yield window, None
        if not facts.windows:
            yield None, (None, UnavailableReason.NO_OBJECTIVE)
        return
    for window in facts.windows:
        if window.window == policy.window:
            yield window, None
            return
    some = (
        UnavailableReason.WINDOW_TARGET_MISSING if facts.windows else UnavailableReason.NO_OBJECTIVE
    )
    yield None, (policy.window, some)


def _of_budget(
    policy: Document, facts: GateFacts, window: WindowFacts | None, missing: _Missing | None
) -> Iterator[Finding]:
    clauses = (GateClause.BUDGET_EXHAUSTED, GateClause.BUDGET_CONSUMED)
    if window is None:
        assert missing is not None, "a missing window has a reason"
        for clause in clauses:
            yield Finding(clause, None, _ungoverned(facts) or missing[1], missing[0])
        return
    why = _ungoverned(facts) or _stale(policy, facts, window)
    found = window.budget
    if why is None and not isinstance(found, ErrorBudget):
        why = UnavailableReason.BUDGET_WITHHELD
    if why is not None or not isinstance(found, ErrorBudget):
        for clause in clauses:
            yield Finding(clause, None, why, window.window)
        return
    burned = found.burned_percent
    consumed = window.has_burned(policy.budget_consumed_percent)
    yield Finding(clauses[0], found.exhausted, None, window.window, burned)
    yield Finding(clauses[1], consumed, None, window.window, burned)


def _of_burn(
    policy: Document,
    facts: GateFacts,
    window: WindowFacts | None,
    missing: _Missing | None,
    severity: BurnSeverity,
    clause: GateClause,
) -> Finding:
    if window is None:
        assert missing is not None, "a missing window has a reason"
        return Finding(clause, None, _ungoverned(facts) or missing[1], missing[0])
    rules = [rule for rule in window.rules if rule.severity is severity]
    if not window.burn_enabled or not rules:
        nobody = _ungoverned(facts) or UnavailableReason.NEVER_EVALUATED
        return Finding(clause, None, nobody, window.window)
    firing = next((rule for rule in rules if rule.firing and is_fresh(rule, facts)), None)
    if firing is not None:
        return Finding(clause, True, None, window.window, firing.key)
    why = _ungoverned(facts) or _unseen(rules, facts) or _stale(policy, facts, window)
    return Finding(clause, False if why is None else None, why, window.window)


def _of_incident(facts: GateFacts) -> Finding:
    """Returns the incident finding. Without an open incident, the service must be able to page."""
    clause = GateClause.SERVICE_INCIDENT_OPEN
    if facts.open_incidents:
        return Finding(clause, True, value=str(facts.open_incidents[0]))
    why = _ungoverned(facts) or _unlooked(facts)
    return Finding(clause, False if why is None else None, why)


def _ungoverned(facts: GateFacts) -> UnavailableReason | None:
    return UnavailableReason.NO_GOVERNING_REVISION if facts.governing is None else None


def _stale(policy: Document, facts: GateFacts, window: WindowFacts) -> UnavailableReason | None:
    lag_us, bound_us = facts.seal_lag_us, policy.max_seal_lag_seconds * SECOND
    if lag_us is None:
        return UnavailableReason.NEVER_SEALED
    # A seal in the future comes from a wrong clock.
    if not -LATCH_US <= lag_us <= bound_us:
        return UnavailableReason.SEAL_STALE
    waits = window.repair_since is not None and facts.at - window.repair_since > bound_us
    return UnavailableReason.FACTS_STALE if waits else None


def _unseen(rules: list[RuleFacts], facts: GateFacts) -> UnavailableReason | None:
    """Returns why the rules are not known to be clear, None if they are."""
    for rule in rules:
        if rule.evaluated_at is None:
            return UnavailableReason.NEVER_EVALUATED
        if not is_fresh(rule, facts):
            return UnavailableReason.FACTS_STALE
        if rule.last_verdict is not BurnState.CLEAR:
            return UnavailableReason.BUDGET_WITHHELD
    return None


def is_fresh(rule: RuleFacts, facts: GateFacts) -> bool:
    """Returns whether the last evaluation of a burn rule still counts."""
    return rule.evaluated_at is not None and _is_lately(rule.evaluated_at, facts.at)


def _is_lately(seen_at: Instant, at: Instant) -> bool:
    """Returns whether an instant is recent. A future instant comes from a wrong clock."""
    return -LATCH_US <= at - seen_at <= LATCH_US


# Reasons for which a missing incident does not show that the service is well. An alerting that
# reaches no channel opens incidents without a page. They match, but an alerting in this condition
# is not trusted to have opened one.
_UNTRUSTED: Final = {
    SignalReason.NO_OWNING_SERVICE: UnavailableReason.NEVER_EVALUATED,
    SignalReason.NO_GOVERNING_REVISION: UnavailableReason.NO_GOVERNING_REVISION,
    SignalReason.POLICY_PAGES_NOTHING: UnavailableReason.NEVER_EVALUATED,
    SignalReason.NEVER_EVALUATED: UnavailableReason.NEVER_EVALUATED,
    SignalReason.NO_ENABLED_TARGET: UnavailableReason.NEVER_EVALUATED,
    SignalReason.UNROUTABLE: UnavailableReason.NEVER_EVALUATED,
    SignalReason.GENERATION_CHANGED: UnavailableReason.FACTS_STALE,
    SignalReason.REVISION_CHANGED: UnavailableReason.FACTS_STALE,
    SignalReason.EVALUATION_ERROR: UnavailableReason.FACTS_STALE,
    SignalReason.STALE_LEASE: UnavailableReason.FACTS_STALE,
    SignalReason.LATCH_INCONSISTENT: UnavailableReason.FACTS_STALE,
}


def _unlooked(facts: GateFacts) -> UnavailableReason | None:
    live = facts.live
    if live.reason in _UNTRUSTED:
        return _UNTRUSTED[live.reason]
    if live.evaluated_at is None:
        return UnavailableReason.NEVER_EVALUATED
    # If the condition is unknown, a missing incident proves no health.
    is_seen = _is_lately(live.evaluated_at, facts.at) and facts.seen is not ServiceCondition.UNKNOWN
    return None if is_seen else UnavailableReason.FACTS_STALE


def _stored_reason(decision: GateOutcome) -> tuple[StoredReason, ...]:
    if decision.state is GateState.NOT_CONFIGURED:
        return (StoredReason("not_configured"),)
    return tuple(
        StoredReason(
            reason.code,
            reason.finding.clause,
            reason.assignment,
            reason.finding.value,
            reason.finding.window,
        )
        for reason in decision.reasons
    )
