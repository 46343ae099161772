"""What a release gate says: a function of the policy's clauses and of what was found of each.

It keeps true: silence never allows. A clause that could not be decided, and one that nobody looked
at, count alike; only what is ignored can stay unknown without a consequence. An override changes
what is done, never what was seen.
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
    """What a clause that matches is to do."""

    BLOCK = "block"
    WARN = "warn"
    IGNORE = "ignore"


class UnavailableReason(StrEnum):
    """Why a clause cannot be decided, in the words of the wire."""

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
    """What was found of a clause, over a window where it has one. `matches` None cannot be decided,
    for the reason that is given; `value` is the figure that it was decided by, or what matched."""

    clause: GateClause
    matches: bool | None
    unavailable: UnavailableReason | None = None
    window: str | None = None
    value: float | str | None = None


@dataclass(frozen=True, slots=True)
class GateReason:
    """A clause that matched, or could not be decided, with what the policy assigns to it."""

    code: str
    assignment: GateClauseAssignment
    finding: Finding


@dataclass(frozen=True, slots=True)
class GateOutcome:
    """`action` is before any override; None where there is no policy."""

    state: GateState
    action: GateAction | None
    reasons: tuple[GateReason, ...]


NOT_CONFIGURED: Final = GateOutcome(GateState.NOT_CONFIGURED, None, ())


def decide(
    clauses: Mapping[GateClause, GateClauseAssignment],
    findings: Sequence[Finding],
    unknown_behavior: UnknownBehavior,
) -> GateOutcome:
    """By a policy that assigns all clauses. Over several windows each is found for itself, and the
    worst of them decides."""
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
    """What is done in the end: an override lets through what would be blocked, and nothing else."""
    return GateAction.ALLOW if is_overridden and action is GateAction.BLOCK else action


def _unasked(findings: Sequence[Finding]) -> list[Finding]:
    """Clauses that nothing was found of cannot be decided."""
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
