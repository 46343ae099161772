"""Decision of the release gate: a function of the policy's clauses and their findings.

Invariants: missing data never allows a release. A clause that could not be decided and a clause
without a finding count the same; only an ignored clause can be unknown without an effect. An
override changes the action, never the state.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class GateClause(StrEnum):
    BUDGET_EXHAUSTED = "budget_exhausted"
    BUDGET_CONSUMED = "budget_consumed"
    PAGE_BURN_FIRING = "page_burn_firing"
    TICKET_BURN_FIRING = "ticket_burn_firing"
    SERVICE_INCIDENT_OPEN = "service_incident_open"


class GateClauseAssignment(StrEnum):
    """Effect of a clause that matches."""

    BLOCK = "block"
    WARN = "warn"
    IGNORE = "ignore"


class UnavailableReason(StrEnum):
    """Reason why a clause cannot be decided; the value is the API code."""

    BUDGET_WITHHELD = "budget_withheld"
    SEAL_STALE = "seal_stale"
    FACTS_STALE = "facts_stale"
    NO_OBJECTIVE = "no_objective"
    WINDOW_TARGET_MISSING = "window_target_missing"
    NEVER_SEALED = "never_sealed"
    NEVER_EVALUATED = "never_evaluated"
    NO_GOVERNING_REVISION = "no_governing_revision"


class GateState(StrEnum):
    ALLOW = "ALLOW"
    WARN = "WARN"
    BLOCK = "BLOCK"
    UNKNOWN = "UNKNOWN"
    NOT_CONFIGURED = "NOT_CONFIGURED"


class GateAction(StrEnum):
    ALLOW = "ALLOW"
    WARN = "WARN"
    BLOCK = "BLOCK"


class UnknownBehavior(StrEnum):
    WARN = "warn"
    BLOCK = "block"


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of one clause, for one window if the clause has windows.

    `matches` is None if the clause cannot be decided, for the reason `unavailable`. `value` is the
    figure that was compared, or the rule or incident that matched.
    """

    clause: GateClause
    matches: bool | None
    unavailable: UnavailableReason | None = None
    window: str | None = None
    value: float | str | None = None


@dataclass(frozen=True, slots=True)
class GateReason:
    """Clause that matched or could not be decided, with its assignment."""

    code: str
    assignment: GateClauseAssignment
    finding: Finding


@dataclass(frozen=True, slots=True)
class GateOutcome:
    """Outcome before any override. `action` is None without a policy."""

    state: GateState
    action: GateAction | None
    reasons: tuple[GateReason, ...]


NOT_CONFIGURED: Final = GateOutcome(GateState.NOT_CONFIGURED, None, ())


def decide(
    clauses: Mapping[GateClause, GateClauseAssignment],
    findings: Sequence[Finding],
    unknown_behavior: UnknownBehavior,
) -> GateOutcome:
    """Returns the outcome for a policy that assigns all clauses.

    A clause can have a finding per window; the worst one decides.
    """
    known = [*findings, *_unasked(findings)]
    blocked = _any(clauses, known, GateClauseAssignment.BLOCK, matches=True)
    unknown = any(
        _any(clauses, known, assignment, matches=None)
        for assignment in (GateClauseAssignment.BLOCK, GateClauseAssignment.WARN)
    )
    warned = _any(clauses, known, GateClauseAssignment.WARN, matches=True)
    reasons = tuple(
        GateReason(_code(finding), clauses[finding.clause], finding)
        for finding in known
        if finding.matches is not False
    )
    if blocked:
        return GateOutcome(GateState.BLOCK, GateAction.BLOCK, reasons)
    if unknown:
        blocks = unknown_behavior is UnknownBehavior.BLOCK
        return GateOutcome(
            GateState.UNKNOWN, GateAction.BLOCK if blocks else GateAction.WARN, reasons
        )
    if warned:
        return GateOutcome(GateState.WARN, GateAction.WARN, reasons)
    return GateOutcome(GateState.ALLOW, GateAction.ALLOW, reasons)


def overridden(action: GateAction | None, *, is_overridden: bool) -> GateAction | None:
    """Returns the final action. An override turns only a block into an allow."""
    return GateAction.ALLOW if is_overridden and action is GateAction.BLOCK else action


def _unasked(findings: Sequence[Finding]) -> list[Finding]:
    """Returns undecided findings for clauses without a finding."""
    asked = {finding.clause for finding in findings}
    never = UnavailableReason.NEVER_EVALUATED
    return [Finding(clause, None, never) for clause in GateClause if clause not in asked]


def _any(
    clauses: Mapping[GateClause, GateClauseAssignment],
    findings: Sequence[Finding],
    assignment: GateClauseAssignment,
    *,
    matches: bool | None,
) -> bool:
    return any(
        finding.matches is matches and clauses[finding.clause] is assignment for finding in findings
    )


def _code(finding: Finding) -> str:
    if finding.matches:
        return finding.clause.value
    return (finding.unavailable or UnavailableReason.NEVER_EVALUATED).value
