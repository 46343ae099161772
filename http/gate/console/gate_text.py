"""Texts of gate findings: each clause with its figure, or with the reason for none."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ....storage.alerting.rules.alert_episode import ServiceCondition
from ....storage.alerting.rules.paging_delegation import SignalReason
from ....storage.core.availability import OBJECTIVE_SCALE, ErrorBudget, Withheld, allowed_us
from ....storage.core.sli import Split
from ....storage.gate.rules.gate import (
    Finding,
    GateAction,
    GateClause,
    GateClauseAssignment,
    UnavailableReason,
)
from ....storage.gate.rules.gate_evidence import (
    Evidence,
    GateFacts,
    StoredReason,
    WindowFacts,
    findings,
)
from ....storage.gate.rules.gate_policy import Document
from ....storage.objectives.rules import BurnSeverity
from ...ui.formatting import count, duration, setting
from ...ui.reliability_text import LABELS, WHY, precisely

ACTION_MARKS: Final = {
    GateAction.ALLOW: "up",
    GateAction.WARN: "degraded",
    GateAction.BLOCK: "down",
}
CLAUSE_WORDS: Final = {
    GateClause.BUDGET_EXHAUSTED: "The error budget is used up",
    GateClause.BUDGET_CONSUMED: "Budget consumed",
    GateClause.PAGE_BURN_FIRING: "A burn rule of severity page is firing",
    GateClause.TICKET_BURN_FIRING: "A burn rule of severity ticket is firing",
    GateClause.SERVICE_INCIDENT_OPEN: "An incident of the service is open",
}
_MATCHED: Final = {
    GateClause.BUDGET_EXHAUSTED: "The error budget is used up",
    GateClause.PAGE_BURN_FIRING: "A burn rule of severity page is firing",
    GateClause.TICKET_BURN_FIRING: "A burn rule of severity ticket is firing",
    GateClause.SERVICE_INCIDENT_OPEN: "An incident of the service is open",
}
_CLEAR: Final = {
    GateClause.BUDGET_EXHAUSTED: "Error budget remains",
    GateClause.PAGE_BURN_FIRING: "No burn rule of severity page is firing",
    GateClause.TICKET_BURN_FIRING: "No burn rule of severity ticket is firing",
    GateClause.SERVICE_INCIDENT_OPEN: "No incident of the service is open",
}
_UNTOLD: Final = {
    GateClause.BUDGET_EXHAUSTED: "Remaining error budget is unknown",
    GateClause.BUDGET_CONSUMED: "Used error budget is unknown",
    GateClause.PAGE_BURN_FIRING: "State of the burn rules of severity page is unknown",
    GateClause.TICKET_BURN_FIRING: ("State of the burn rules of severity ticket is unknown"),
    GateClause.SERVICE_INCIDENT_OPEN: "State of the service incidents is unknown",
}
# Short texts for lists, which have one line per decision.
_SHORT: Final = {
    "budget_exhausted": "the error budget is used up",
    "budget_consumed": "the budget threshold is reached",
    "page_burn_firing": "a burn rule of severity page is firing",
    "ticket_burn_firing": "a burn rule of severity ticket is firing",
    "service_incident_open": "an incident is open",
    "budget_withheld": "the error budget has no data",
    "seal_stale": "data is too old",
    "facts_stale": "some data is too old",
    "no_objective": "no objective is set",
    "window_target_missing": "no objective is set over that window",
    "never_sealed": "no data yet",
    "never_evaluated": "not evaluated",
    "no_governing_revision": "no declaration is in force",
    "not_configured": "no policy is configured",
}
_MARK_OF: Final = {GateClauseAssignment.BLOCK: "down", GateClauseAssignment.WARN: "degraded"}


@dataclass(frozen=True, slots=True)
class ClauseItem:
    """Clause over a window. `chip` is its assignment in the policy, `code` its API name."""

    mark: str
    text: str
    chip: str
    note: str
    code: str
    matches: bool


def short(code: str) -> str:
    """Returns the short text of a reason code, or the code itself if it is unknown."""
    return _SHORT.get(code, code)


def because(reasons: Sequence[StoredReason]) -> str:
    """Returns the most important reason, and the number of further reasons."""
    counted = [each for each in reasons if each.assignment is not GateClauseAssignment.IGNORE]
    counted.sort(key=_weight)
    codes = list(dict.fromkeys(each.code for each in counted))
    if not codes:
        return "no clause matched"
    further = len(codes) - 1
    return (
        f"{short(codes[0])}, and {count(further, 'more', 'more')}" if further else short(codes[0])
    )


def _weight(reason: StoredReason) -> int:
    """Returns the order: known blocking reasons, undecidable clauses, warnings."""
    if reason.clause is None or reason.code != reason.clause.value:
        return 1
    return 0 if reason.assignment is GateClauseAssignment.BLOCK else 2


def lines(evidence: Evidence) -> list[ClauseItem]:
    """Returns all clauses. Those that count, matched or undecidable, come before the others."""
    if evidence.policy is None:
        return []
    document = evidence.policy.document
    said = [_item(document, evidence.facts, each) for each in findings(document, evidence.facts)]
    order = {"down": 0, "unknown": 1, "degraded": 2}
    return sorted(said, key=lambda line: (not line.matches, order.get(line.mark, 3)))


def _item(document: Document, facts: GateFacts, found: Finding) -> ClauseItem:
    assignment = document.clauses[found.clause]
    if found.unavailable is not None:
        text, mark = _UNTOLD[found.clause], "unknown"
        note = _why(document, facts, found)
        code = found.unavailable.value
    else:
        text = _found(document, found)
        mark = _MARK_OF.get(assignment, "pending") if found.matches else "up"
        note = _figure(facts, found)
        code = found.clause.value
    if assignment is GateClauseAssignment.IGNORE and found.matches is not False:
        mark = "pending"
    counts = found.matches is not False and assignment is not GateClauseAssignment.IGNORE
    return ClauseItem(mark, text, assignment.value, note, code, counts)


def _found(document: Document, found: Finding) -> str:
    if found.clause is GateClause.BUDGET_CONSUMED:
        percent = f"{document.budget_consumed_percent}%"
        return (
            f"{_percent(found.value)} of the error budget is used"
            if found.matches
            else f"Less than {percent} of the error budget is used"
        )
    return _MATCHED[found.clause] if found.matches else _CLEAR[found.clause]


def _percent(value: float | str | None) -> str:
    """Returns a percentage, truncated."""
    return f"{int(float(value or 0) * 10) / 10:g}%"


def _figure(facts: GateFacts, found: Finding) -> str:
    window = _window(facts, found.window)
    if (
        found.clause in (GateClause.BUDGET_EXHAUSTED, GateClause.BUDGET_CONSUMED)
        and window is not None
    ):
        return f"{used(window)} over {LABELS[window.window]}."
    if isinstance(found.value, str) and found.clause is not GateClause.SERVICE_INCIDENT_OPEN:
        return f"{found.value}."
    return f"Over {LABELS[window.window]}." if window is not None else ""


def used(window: WindowFacts) -> str:
    """Returns `34 min of 43 min used`, or the reason if the budget is withheld."""
    budget = window.budget
    if isinstance(budget, Withheld):
        return f"No data: {WHY.get(budget, budget)}"
    split = Split(window.good_us, window.bad_us, window.unknown_us, window.excluded_us)
    allowed = int(allowed_us(split, window.objective))
    return f"{precisely(window.bad_us)} of {precisely(allowed)} used"


def _why(document: Document, facts: GateFacts, found: Finding) -> str:
    window = _window(facts, found.window)
    over = f" over {LABELS[found.window]}" if found.window in LABELS else ""
    bound = setting(document.max_seal_lag_seconds)
    match found.unavailable:
        case UnavailableReason.BUDGET_WITHHELD if window is not None:
            budget = window.budget
            if isinstance(budget, ErrorBudget):
                return f"Coverage{over} is too low to evaluate the rule."
            return f"No data{over}: {WHY.get(budget, budget)}."
        case UnavailableReason.SEAL_STALE if (facts.seal_lag_us or 0) < 0:
            return "Sealed data ends after the query: check the clocks."
        case UnavailableReason.SEAL_STALE:
            lag = duration(facts.seal_lag_us or 0)
            return f"Data is {lag} old; at most {bound} is allowed."
        case UnavailableReason.FACTS_STALE if found.clause in _BUDGETS:
            return f"Recomputation{over} is pending for more than {bound}."
        case UnavailableReason.FACTS_STALE if _is_unseen(facts, found):
            return "The last evaluation failed."
        case UnavailableReason.FACTS_STALE:
            return f"No current evaluation within {setting(90)}."
        case UnavailableReason.NO_OBJECTIVE:
            return "No objective is set."
        case UnavailableReason.WINDOW_TARGET_MISSING:
            return f"The service has no objective{over}."
        case UnavailableReason.NEVER_SEALED:
            return "No data yet."
        case UnavailableReason.NO_GOVERNING_REVISION:
            return "No declaration of the service is in force yet."
        case UnavailableReason.NEVER_EVALUATED if found.clause is GateClause.SERVICE_INCIDENT_OPEN:
            if facts.live.reason in _SET_UP:
                return "The alerting of the service cannot page."
            return "The service was not evaluated yet."
    if window is not None and _is_watched(window, found.clause):
        return f"The burn rule{over} was not evaluated yet."
    return f"No active burn rule{over}."


_BUDGETS: Final = (GateClause.BUDGET_EXHAUSTED, GateClause.BUDGET_CONSUMED)
_SEVERITIES: Final = {
    GateClause.PAGE_BURN_FIRING: BurnSeverity.PAGE,
    GateClause.TICKET_BURN_FIRING: BurnSeverity.TICKET,
}
# Reasons that prevent every page of the service until the configuration changes.
_SET_UP: Final = (
    SignalReason.NO_OWNING_SERVICE,
    SignalReason.POLICY_PAGES_NOTHING,
    SignalReason.NO_ENABLED_TARGET,
    SignalReason.UNROUTABLE,
)


def _is_unseen(facts: GateFacts, found: Finding) -> bool:
    return (
        found.clause is GateClause.SERVICE_INCIDENT_OPEN and facts.seen is ServiceCondition.UNKNOWN
    )


def _is_watched(window: WindowFacts, clause: GateClause) -> bool:
    severity = _SEVERITIES.get(clause)
    return window.burn_enabled and any(rule.severity is severity for rule in window.rules)


def _window(facts: GateFacts, name: str | None) -> WindowFacts | None:
    return next((each for each in facts.windows if each.window == name), None)


def document_lines(document: Document) -> list[tuple[str, str]]:
    """Returns the policy as (name, value) lines."""
    windows = (
        "all with an objective; the worst one decides"
        if document.window is None
        else LABELS[document.window]
    )
    said = [(CLAUSE_WORDS[clause], document.clauses[clause].value) for clause in GateClause]
    percent = f"from {document.budget_consumed_percent}%"
    said = [
        (f"{name}, {percent}" if n == 1 else name, value) for n, (name, value) in enumerate(said)
    ]
    return [
        *said,
        ("If data is missing", f"action {document.unknown_behavior.upper()}"),
        ("Windows", windows),
        ("Maximum data age", setting(document.max_seal_lag_seconds)),
    ]


def objective_of(window: WindowFacts) -> str:
    return f"{window.objective / OBJECTIVE_SCALE:g}%"
