"""Text of a gate decision: the result, each reason with its figures, the id.

Every string from the server passes through `shown`.
"""

from decimal import ROUND_FLOOR, Decimal
from enum import StrEnum
from typing import Final

from ...storage.gate.rules.gate import (
    GateAction,
    GateClause,
    GateClauseAssignment,
    GateState,
    UnavailableReason,
)
from .gate_response import Figure, PrintedDecision, PrintedReason
from .safe_text import shown


class ReasonEffect(StrEnum):
    """Effect of a reason on the decision."""

    BLOCKS = "blocks"
    WARNS = "warns"
    UNKNOWN = "unavailable"
    IGNORED = "ignored"
    SAID = "because"


_PLACES: Final = Decimal("0.01")
_LARGEST: Final = 1e15
_VERDICTS: Final = {
    GateAction.ALLOW: "can be released",
    GateAction.WARN: "can be released, with a warning",
    GateAction.BLOCK: "must not be released",
    None: "has no gate policy",
}
_QUESTIONS: Final[dict[str, str]] = {
    GateClause.BUDGET_EXHAUSTED: "error budget exhausted",
    GateClause.BUDGET_CONSUMED: "error budget consumed",
    GateClause.PAGE_BURN_FIRING: "burn rule of severity page",
    GateClause.TICKET_BURN_FIRING: "burn rule of severity ticket",
    GateClause.SERVICE_INCIDENT_OPEN: "open service incident",
}
_CAUSES: Final[dict[str, str]] = {
    UnavailableReason.BUDGET_WITHHELD: "the budget is withheld, since the coverage is too low",
    UnavailableReason.SEAL_STALE: "the sealed data is too old",
    UnavailableReason.FACTS_STALE: "the last evaluation is too old, or a repair is pending",
    UnavailableReason.NO_OBJECTIVE: "the service has no objective",
    UnavailableReason.WINDOW_TARGET_MISSING: "the service has no objective for this window",
    UnavailableReason.NEVER_SEALED: "the service has no sealed data yet",
    UnavailableReason.NEVER_EVALUATED: (
        "no such rule is evaluated: burn alerts are off, or no rule has this severity"
    ),
    UnavailableReason.NO_GOVERNING_REVISION: "no revision of the service is in force",
}
# No incident is open, and the alerting is not set up to page, or did not run yet.
_UNWATCHED: Final = (UnavailableReason.NEVER_EVALUATED, GateClause.SERVICE_INCIDENT_OPEN)


def decision_text(decision: PrintedDecision) -> list[str]:
    """Returns the lines that the command prints without --format."""
    return [
        headline(decision),
        *(f"  {line}" for line in reasons_text(decision)),
        footing(decision),
    ]


def headline(decision: PrintedDecision) -> str:
    """Returns the line with action, service and result."""
    verdict = _VERDICTS[decision.action]
    if decision.is_overridden:
        verdict = "can be released because of an override"
    return f"{action_word(decision)}: {named(decision)} {verdict}"


def action_word(decision: PrintedDecision) -> str:
    """Returns the action, followed by the observed state if the two differ."""
    if decision.action is None:
        return decision.state.value
    if decision.action.value == decision.state.value:
        return decision.action.value
    return f"{decision.action} ({decision.state})"


def named(decision: PrintedDecision) -> str:
    name, slug = shown(decision.service_name, 120), shown(decision.service_slug, 63)
    return slug if name in ("", slug) else f"{name} ({slug})"


def reasons_text(decision: PrintedDecision) -> list[str]:
    """Returns a line for each reason with its effect, and one for an override in use."""
    lines = [f"{weight(reason)}: {reason_text(decision, reason)}" for reason in decision.reasons]
    override = decision.override
    if decision.is_overridden and override is not None:
        lines.append(
            f"overridden by {shown(override.actor_label, 120)}"
            f" until {shown(override.expires_at, 40)}: {shown(override.reason)}"
        )
    elif decision.is_overridden:
        lines.append("overridden")
    return lines


def footing(decision: PrintedDecision) -> str:
    """Returns the line with the decision's id and its policy revision."""
    line = f"decision {decision.decision_id} at {shown(decision.evaluated_at, 40)}"
    if decision.policy_revision is None:
        return line
    source = shown(decision.policy_source or "", 40)
    return f"{line}, by revision {decision.policy_revision} of the {source or 'gate'} policy"


def weight(reason: PrintedReason) -> ReasonEffect:
    if reason.assignment is None:
        return ReasonEffect.SAID
    if reason.assignment == GateClauseAssignment.IGNORE:
        return ReasonEffect.IGNORED
    if reason.is_undecided:
        return ReasonEffect.UNKNOWN
    return (
        ReasonEffect.BLOCKS
        if reason.assignment == GateClauseAssignment.BLOCK
        else ReasonEffect.WARNS
    )


def decides(decision: PrintedDecision, reason: PrintedReason) -> bool:
    """Returns whether the decision blocks because of this reason.

    An unavailable clause blocks only in the state UNKNOWN."""
    if decision.action is not GateAction.BLOCK:
        return False
    heavy = ReasonEffect.UNKNOWN if decision.state is GateState.UNKNOWN else ReasonEffect.BLOCKS
    return weight(reason) is heavy


def reason_text(decision: PrintedDecision, reason: PrintedReason) -> str:
    """Returns the finding of a reason, or why its clause is unavailable."""
    if reason.code == GateState.NOT_CONFIGURED.value.lower():
        return "neither the service nor its project has a gate policy"
    if reason.code in _CAUSES:
        asked = _QUESTIONS.get(reason.clause or "", shown(reason.clause or "it", 100))
        return f"{asked}{_over(reason)}: {_cause(decision, reason)}"
    found = _found(reason)
    if found is not None:
        return found
    value = "" if reason.value is None else f": {_figure(reason.value)}"
    return f"{shown(reason.code, 100)}{_over(reason)}{value}"


def _found(reason: PrintedReason) -> str | None:
    """Returns the text of a matched clause; None if this version does not know the clause."""
    value = None if reason.value is None else _figure(reason.value)
    over = _over(reason)
    if reason.code == GateClause.BUDGET_EXHAUSTED:
        used = "" if value is None else f" ({value} % used)"
        return f"the error budget{over} is exhausted{used}"
    if reason.code == GateClause.BUDGET_CONSUMED:
        used = "" if value is None else f" ({value} % used)"
        return f"the used error budget{over} has reached the policy limit{used}"
    tail = "" if value is None else f" ({value})"
    if reason.code == GateClause.PAGE_BURN_FIRING:
        return f"a burn rule of severity page is firing{over}{tail}"
    if reason.code == GateClause.TICKET_BURN_FIRING:
        return f"a burn rule of severity ticket is firing{over}{tail}"
    if reason.code == GateClause.SERVICE_INCIDENT_OPEN:
        return f"the service has an open incident{tail}"
    return None


def _cause(decision: PrintedDecision, reason: PrintedReason) -> str:
    if (reason.code, reason.clause) == _UNWATCHED:
        return "the alerting of the service cannot page, or was not evaluated"
    cause = _CAUSES[reason.code]
    lag, most = decision.seal_lag, decision.max_seal_lag_seconds
    if reason.code == UnavailableReason.SEAL_STALE and lag is not None and most is not None:
        return f"{cause}: {lag:.0f} s, policy allows {most} s"
    return cause


def _over(reason: PrintedReason) -> str:
    return "" if reason.window is None else f" over {shown(reason.window, 20)}"


def _figure(value: Figure) -> str:
    """Formats a number with at most two decimals, rounded down: 99.999 is never shown as 100."""
    if not isinstance(value, float) or abs(value) > _LARGEST:
        return shown(str(value), 200)
    down = Decimal(repr(value)).quantize(_PLACES, ROUND_FLOOR)
    return f"{down:f}".rstrip("0").rstrip(".")
