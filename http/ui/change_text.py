"""Texts of changes: description, outcome, gate decision and comparison.

The texts state precedence in time, never a cause.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final
from uuid import UUID

from ...storage.changes.queries.change_gate_decisions import ChangeDecision
from ...storage.changes.rows import ChangeRow, PhaseRow
from ...storage.changes.rules.change import ChangeKind, ChangePhaseName
from ...storage.changes.rules.change_comparison import ComparisonWithheld, Side
from ...storage.core.availability import digits
from ...storage.core.instant import MINUTE, SECOND, Instant
from ...storage.gate.rules.gate import GateState
from .data_table import exact
from .formatting import NOTHING, coverage, duration, percent
from .gate_marks import MARKS, STATE_WORDS
from .plots import timeline_lanes as lanes
from .plots.timeline_lanes import ChangeOutcomeClass, change_sign
from .reliability_text import ReliabilityText, precisely

# Longest name in lists, in characters. The change screen shows the whole name.
SHORT_MOST: Final = 32

KINDS: Final = {
    ChangeKind.DEPLOY: "deploy",
    ChangeKind.ROLLBACK: "rollback",
    ChangeKind.FLAG: "flag change",
}
OUTCOMES: Final = {
    ChangeOutcomeClass.GOING: "in progress",
    ChangeOutcomeClass.SUCCEEDED: "succeeded",
    ChangeOutcomeClass.FAILED: "failed",
    ChangeOutcomeClass.CANCELLED: "cancelled",
}
_SENTENCES: Final = {
    ChangeOutcomeClass.GOING: "is in progress",
    ChangeOutcomeClass.SUCCEEDED: "succeeded",
    ChangeOutcomeClass.FAILED: "failed",
    ChangeOutcomeClass.CANCELLED: "was cancelled",
}
_DRAWN: Final = {
    ChangeKind.DEPLOY: lanes.ChangeSymbolKind.DEPLOY,
    ChangeKind.ROLLBACK: lanes.ChangeSymbolKind.ROLLBACK,
    ChangeKind.FLAG: lanes.ChangeSymbolKind.FLAG,
}
_OUTCOME_OF: Final = {
    ChangePhaseName.STARTED: ChangeOutcomeClass.GOING,
    ChangePhaseName.SUCCEEDED: ChangeOutcomeClass.SUCCEEDED,
    ChangePhaseName.FAILED: ChangeOutcomeClass.FAILED,
    ChangePhaseName.CANCELLED: ChangeOutcomeClass.CANCELLED,
}
_WITHHELD: Final = {
    ComparisonWithheld.DEFINITION_CHANGED: ("the definition changed in this period"),
    ComparisonWithheld.UNDECIDABLE: "coverage is below 50 %",
    ComparisonWithheld.NO_FACTS: "nothing recorded yet",
}
MINUS: Final = "\u2212"


@dataclass(frozen=True, slots=True)
class ChangeSymbol:
    """Drawing of a change: `symbols` on top of each other, in the style of an outcome."""

    symbols: Sequence[str]
    outcome: str


@dataclass(frozen=True, slots=True)
class ChangeDecisionText:
    """Gate decision of a change. `uid` is None if retention deleted the decision."""

    uid: UUID | None
    mark: str
    word: str
    note: str


def outcome_of(phases: Sequence[PhaseRow]) -> ChangeOutcomeClass:
    return _OUTCOME_OF[phases[-1].phase]


def drawn_kind(kind: ChangeKind) -> lanes.ChangeSymbolKind:
    return _DRAWN[kind]


def sign_of(kind: ChangeKind, phases: Sequence[PhaseRow]) -> ChangeSymbol:
    outcome = outcome_of(phases)
    return ChangeSymbol(change_sign(_DRAWN[kind], outcome), outcome.value)


def name_of(change: ChangeRow, ref: str) -> str:
    """Returns the kind and the ref of the change, or its external id without a ref."""
    return f"{KINDS[change.kind].capitalize()} {ref or change.external_id}"


def sentence_of(change: ChangeRow, phases: Sequence[PhaseRow], ref: str, service: str) -> str:
    """Returns the first line of the change screen."""
    return f"{name_of(change, ref)} of {service} {_SENTENCES[outcome_of(phases)]}"


def short(text: str) -> str:
    return text if len(text) <= SHORT_MOST else f"{text[: SHORT_MOST - 1]}…"


def before(lag_seconds: int) -> str:
    return f"{duration(lag_seconds * SECOND)} before"


def gated(decision: UUID | None, decided: ChangeDecision | None) -> ChangeDecisionText | None:
    if decision is None:
        return None
    if decided is None:
        return ChangeDecisionText(None, "unknown", "deleted by retention", "")
    state = GateState(decided.state)
    note = "overridden" if decided.is_overridden else ""
    return ChangeDecisionText(decision, MARKS[state], STATE_WORDS[state], note)


def side(found: Side, sealed_through: Instant | None) -> ReliabilityText:
    """Returns a figure with its coverage, or a dash with the reason."""
    span = found.span
    if found.availability is not None and found.facts is not None:
        split = found.facts.split
        bad = precisely(split.bad_us) if split.bad_us else "none"
        note = f"bad: {bad}, coverage {coverage(split.coverage())}"
        return ReliabilityText(percent(found.availability, split.measured_us // MINUTE), note)
    if found.is_pending:
        assert sealed_through is not None, "a pending comparison has a horizon"
        note = f"pending: data up to {exact(sealed_through)}, needed up to {exact(span.until)}"
        return ReliabilityText(NOTHING, note, withheld=True)
    assert found.withheld is not None, "a side has a figure, waits for one, or has a reason"
    return ReliabilityText(
        NOTHING, f"No data: {_WITHHELD[found.withheld]}; {found.detail}", withheld=True
    )


def difference(delta: Fraction | None, sides: Sequence[Side]) -> ReliabilityText:
    """Returns after minus before, with one digit more than the sides have, truncated."""
    if delta is None:
        return ReliabilityText(NOTHING, "No data: both figures are required", withheld=True)
    if delta == 0:
        return ReliabilityText("0", "percentage points, after minus before")
    measured = [one.facts.split.measured_us // MINUTE for one in sides if one.facts is not None]
    places = digits(min(measured)) + 1
    scale = 10**places
    steps = int(abs(delta) * scale)
    sign = "+" if delta > 0 else MINUS
    text = f"{sign}{steps / scale:.{places}f}" if steps else f"{sign}< {1 / scale:.{places}f}"
    return ReliabilityText(text, "percentage points, after minus before")
