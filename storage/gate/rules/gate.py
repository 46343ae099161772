"""What a release gate says: a function of the policy's clauses and of what was found of each.

It keeps true: silence never allows. A clause that could not be decided, and one that nobody looked
at, count alike; only what is ignored can stay unknown without a consequence. An override changes
what is done, never what was seen.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Clause(StrEnum):
    BUDGET_EXHAUSTED = "budget_exhausted"
    BUDGET_CONSUMED = "budget_consumed"
    PAGE_BURN_FIRING = "page_burn_firing"
    TICKET_BURN_FIRING = "ticket_burn_firing"
    SERVICE_INCIDENT_OPEN = "service_incident_open"


class Assignment(StrEnum):
    """What a clause that matches is to do."""

    BLOCK = "block"
    WARN = "warn"
    IGNORE = "ignore"


class Unavailable(StrEnum):
    """Why a clause cannot be decided, in the words of the wire."""

    BUDGET_WITHHELD = "budget_withheld"
    SEAL_STALE = "seal_stale"
    FACTS_STALE = "facts_stale"
    NO_OBJECTIVE = "no_objective"
    WINDOW_TARGET_MISSING = "window_target_missing"
    NEVER_SEALED = "never_sealed"
    NEVER_EVALUATED = "never_evaluated"
    NO_GOVERNING_REVISION = "no_governing_revision"


class State(StrEnum):
    ALLOW = "ALLOW"
    WARN = "WARN"
    BLOCK = "BLOCK"
    UNKNOWN = "UNKNOWN"
    NOT_CONFIGURED = "NOT_CONFIGURED"


class Action(StrEnum):
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

    clause: Clause
    matches: bool | None
    unavailable: Unavailable | None = None
    window: str | None = None
    value: float | str | None = None


@dataclass(frozen=True, slots=True)
class Reason:
    """A clause that matched, or could not be decided, with what the policy assigns to it."""

    code: str
    assignment: Assignment
    finding: Finding


@dataclass(frozen=True, slots=True)
class Decision:
    """`action` is before any override; None where there is no policy."""

    state: State
    action: Action | None
    reasons: tuple[Reason, ...]


NOT_CONFIGURED: Final = Decision(State.NOT_CONFIGURED, None, ())


def decide(
    clauses: Mapping[Clause, Assignment],
    findings: Sequence[Finding],
    unknown_behavior: UnknownBehavior,
) -> Decision:
    """By a policy that assigns all clauses. Over several windows each is found for itself, and the
    worst of them decides."""
    known = [*findings, *_unasked(findings)]
    blocked = _any(clauses, known, Assignment.BLOCK, matches=True)
    unknown = any(
        _any(clauses, known, assignment, matches=None)
        for assignment in (Assignment.BLOCK, Assignment.WARN)
    )
    warned = _any(clauses, known, Assignment.WARN, matches=True)
    reasons = tuple(
        Reason(_code(finding), clauses[finding.clause], finding)
        for finding in known
        if finding.matches is not False
    )
    if blocked:
        return Decision(State.BLOCK, Action.BLOCK, reasons)
    if unknown:
        blocks = unknown_behavior is UnknownBehavior.BLOCK
        return Decision(State.UNKNOWN, Action.BLOCK if blocks else Action.WARN, reasons)
    if warned:
        return Decision(State.WARN, Action.WARN, reasons)
    return Decision(State.ALLOW, Action.ALLOW, reasons)


def overridden(action: Action | None, *, is_overridden: bool) -> Action | None:
    """What is done in the end: an override lets through what would be blocked, and nothing else."""
    return Action.ALLOW if is_overridden and action is Action.BLOCK else action


def _unasked(findings: Sequence[Finding]) -> list[Finding]:
    """Clauses that nothing was found of cannot be decided."""
    asked = {finding.clause for finding in findings}
    never = Unavailable.NEVER_EVALUATED
    return [Finding(clause, None, never) for clause in Clause if clause not in asked]


def _any(
    clauses: Mapping[Clause, Assignment],
    findings: Sequence[Finding],
    assignment: Assignment,
    *,
    matches: bool | None,
) -> bool:
    return any(
        finding.matches is matches and clauses[finding.clause] is assignment for finding in findings
    )


def _code(finding: Finding) -> str:
    if finding.matches:
        return finding.clause.value
    return (finding.unavailable or Unavailable.NEVER_EVALUATED).value
