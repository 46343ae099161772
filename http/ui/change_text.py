"""Changes in plain words: what was done, how it ended, what the gate had said, and both sides.

What came before is said to have come before.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final
from uuid import UUID

from ...storage.changes.queries.change_gate_decisions import Decided
from ...storage.changes.rows import ChangeRow, PhaseRow
from ...storage.changes.rules.change import Kind, Phase
from ...storage.changes.rules.change_comparison import Side, Withheld
from ...storage.core.availability import digits
from ...storage.core.instant import MINUTE, SECOND, Instant
from ...storage.gate.rules.gate import State
from .data_table import exact
from .formatting import NOTHING, coverage, duration, percent
from .gate_marks import MARKS, STATE_WORDS
from .plots import timeline_lanes as lanes
from .plots.timeline_lanes import Outcome, change_sign
from .reliability_text import Told, precisely

# Where many stand under each other; the page of one has it whole.
SHORT_MOST: Final = 32

KINDS: Final = {Kind.DEPLOY: "deploy", Kind.ROLLBACK: "rollback", Kind.FLAG: "flag change"}
OUTCOMES: Final = {
    Outcome.GOING: "going on",
    Outcome.SUCCEEDED: "succeeded",
    Outcome.FAILED: "failed",
    Outcome.CANCELLED: "cancelled",
}
_SENTENCES: Final = {
    Outcome.GOING: "is going on",
    Outcome.SUCCEEDED: "succeeded",
    Outcome.FAILED: "failed",
    Outcome.CANCELLED: "was cancelled",
}
_DRAWN: Final = {
    Kind.DEPLOY: lanes.Kind.DEPLOY,
    Kind.ROLLBACK: lanes.Kind.ROLLBACK,
    Kind.FLAG: lanes.Kind.FLAG,
}
_OUTCOME_OF: Final = {
    Phase.STARTED: Outcome.GOING,
    Phase.SUCCEEDED: Outcome.SUCCEEDED,
    Phase.FAILED: Outcome.FAILED,
    Phase.CANCELLED: Outcome.CANCELLED,
}
_WITHHELD: Final = {
    Withheld.DEFINITION_CHANGED: "what the service is made of was declared otherwise meanwhile",
    Withheld.UNDECIDABLE: "too little of it could be decided",
    Withheld.NO_FACTS: "nothing is sealed of this time",
}
MINUS: Final = "\u2212"


@dataclass(frozen=True, slots=True)
class Sign:
    """How a change is drawn: `symbols` on each other, in the manner of an outcome."""

    symbols: Sequence[str]
    outcome: str


@dataclass(frozen=True, slots=True)
class Gated:
    """What the gate had said; `uid` is None where the decision is kept no more."""

    uid: UUID | None
    mark: str
    word: str
    note: str


def outcome_of(phases: Sequence[PhaseRow]) -> Outcome:
    return _OUTCOME_OF[phases[-1].phase]


def drawn_kind(kind: Kind) -> lanes.Kind:
    return _DRAWN[kind]


def sign_of(kind: Kind, phases: Sequence[PhaseRow]) -> Sign:
    outcome = outcome_of(phases)
    return Sign(change_sign(_DRAWN[kind], outcome), outcome.value)


def name_of(change: ChangeRow, ref: str) -> str:
    """What was done, by what it is called, or else by what its source calls it."""
    return f"{KINDS[change.kind].capitalize()} {ref or change.external_id}"


def sentence_of(change: ChangeRow, phases: Sequence[PhaseRow], ref: str, service: str) -> str:
    """The first line of a change."""
    return f"{name_of(change, ref)} of {service} {_SENTENCES[outcome_of(phases)]}"


def short(text: str) -> str:
    return text if len(text) <= SHORT_MOST else f"{text[: SHORT_MOST - 1]}…"


def before(lag_seconds: int) -> str:
    return f"{duration(lag_seconds * SECOND)} before"


def gated(decision: UUID | None, decided: Decided | None) -> Gated | None:
    if decision is None:
        return None
    if decided is None:
        return Gated(None, "unknown", "no longer kept", "")
    state = State(decided.state)
    note = "overridden" if decided.is_overridden else ""
    return Gated(decision, MARKS[state], STATE_WORDS[state], note)


def side(found: Side, sealed_through: Instant | None) -> Told:
    """A figure with what it is made of, or a dash with the reason for it."""
    span = found.span
    if found.availability is not None and found.facts is not None:
        split = found.facts.split
        bad = precisely(split.bad_us) if split.bad_us else "none"
        note = f"bad: {bad}, coverage {coverage(split.coverage())}"
        return Told(percent(found.availability, split.measured_us // MINUTE), note)
    if found.is_pending:
        assert sealed_through is not None, "what waits for facts has some"
        note = f"pending: sealed to {exact(sealed_through)}, needed to {exact(span.until)}"
        return Told(NOTHING, note, withheld=True)
    assert found.withheld is not None, "a side has a figure, waits for one, or has a reason"
    return Told(NOTHING, f"withheld: {_WITHHELD[found.withheld]}; {found.detail}", withheld=True)


def difference(delta: Fraction | None, sides: Sequence[Side]) -> Told:
    """After less before, with a digit more than the sides bear, cut and not rounded."""
    if delta is None:
        return Told(NOTHING, "withheld: it takes two figures", withheld=True)
    if delta == 0:
        return Told("0", "percentage points, after less before")
    measured = [one.facts.split.measured_us // MINUTE for one in sides if one.facts is not None]
    places = digits(min(measured)) + 1
    scale = 10**places
    steps = int(abs(delta) * scale)
    sign = "+" if delta > 0 else MINUS
    text = f"{sign}{steps / scale:.{places}f}" if steps else f"{sign}< {1 / scale:.{places}f}"
    return Told(text, "percentage points, after less before")
