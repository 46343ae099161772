"""Plot, totals and table of a policy replay over one span."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from ....storage.core.instant import DAY, Instant
from ....storage.core.time_span import TimeSpan
from ....storage.gate.rules.gate import GateState
from ....storage.gate.rules.gate_replay import ReplayedSpan
from ...ui.data_table import MaintenanceTable, exact
from ...ui.formatting import NOTHING, count, day, duration
from ...ui.gate_marks import MARKS, STATE_WORDS
from ...ui.plots.latency import Tick
from ...ui.plots.replay_lanes import ReplayBar, ReplayedMark, replay
from ...ui.shown_time import offset_us, zone_word
from ..routes.policy_replay import ReplayedOutcome, ReplayResult
from .gate_text import short

TABLE_MOST: Final = 100
_TICKS: Final = 6


@dataclass(frozen=True, slots=True)
class Total:
    """Duration of a state, under the policy in force and under the draft."""

    mark: str
    word: str
    text: str
    note: str


@dataclass(frozen=True, slots=True)
class ReplayPlot:
    plot: Markup
    totals: Sequence[Total]
    table: MaintenanceTable
    from_: str
    to: str


def drawn(found: ReplayResult, *, has_draft: bool) -> ReplayPlot:
    within = found.within
    lanes = [("In force", _bars(found.in_force, within))]
    if has_draft:
        lanes.append(("Draft", _bars(found.draft, within)))
    # The newest decisions are after the seal. They are drawn at the edge.
    made = [_made(each, within) for each in found.decisions]
    said = "Decisions of the policies in force"
    said += " and of the draft" if has_draft else ""
    shown = found.draft if has_draft else found.in_force
    return ReplayPlot(
        replay(lanes, made, _ticks(within), f"{said}, {_days(within)}"),
        _totals(found, has_draft=has_draft),
        _table(shown),
        exact(within.from_),
        exact(within.until),
    )


def _days(within: TimeSpan) -> str:
    return f"from {exact(within.from_)} to {exact(within.until)} {zone_word()}"


def _bars(said: Sequence[ReplayedSpan], within: TimeSpan) -> list[ReplayBar]:
    return [
        ReplayBar(
            _share(each.span.from_, within),
            _share(each.span.until, within),
            each.state.value,
            _plot_text(each),
        )
        for each in said
    ]


def _plot_text(said: ReplayedSpan) -> str:
    why = ", ".join(short(code) for code in said.reasons)
    return f"{STATE_WORDS[said.state]} from {exact(said.span.from_)}{f': {why}' if why else ''}"


def _made(judged: ReplayedOutcome, within: TimeSpan) -> ReplayedMark:
    at = exact(judged.evaluated_at)
    differs = judged.state is not judged.draft_state
    words = STATE_WORDS[judged.state]
    if differs:
        words = f"{words}, draft {STATE_WORDS[judged.draft_state]}"
    return ReplayedMark(_share(judged.evaluated_at, within), differs, f"{at}: {words}")


def _share(at: Instant, within: TimeSpan) -> float:
    return min(max((at - within.from_) / within.length_us, 0.0), 1.0)


def _ticks(within: TimeSpan) -> list[Tick]:
    """Returns evenly spaced midnights of the zone."""
    every = max(within.length_us // DAY // (_TICKS - 1), 1) * DAY
    first = within.from_ + (-within.from_ - offset_us(within.from_)) % DAY
    return [
        Tick(_share(Instant(at), within), day(Instant(at)), n % 2 == 1)
        for n, at in enumerate(range(first, within.until, every))
    ]


def _totals(found: ReplayResult, *, has_draft: bool) -> list[Total]:
    totals = []
    for state in GateState:
        in_force, draft = _length(found.in_force, state), _length(found.draft, state)
        if not in_force and not draft:
            continue
        text = duration(draft if has_draft else in_force)
        note = ""
        if has_draft:
            note = "the same" if in_force == draft else f"in force: {_or_none(in_force)}"
            text = _or_none(draft)
        totals.append(Total(MARKS[state], STATE_WORDS[state], text, note))
    many = len(found.decisions)
    differ = sum(each.state is not each.draft_state for each in found.decisions)
    if has_draft and many:
        totals.append(Total("", "Decisions", f"{differ} of {many} differ", _changed(found)))
    elif many:
        totals.append(Total("", "Decisions", count(many, "decision"), "with their own evidence"))
    return totals


def _or_none(us: int) -> str:
    return duration(us) if us else NOTHING


def _length(said: Sequence[ReplayedSpan], state: GateState) -> int:
    return sum(each.span.length_us for each in said if each.state is state)


def _changed(found: ReplayResult) -> str:
    """Returns a description of the most frequent change."""
    pairs = [
        (each.state, each.draft_state)
        for each in found.decisions
        if each.state is not each.draft_state
    ]
    if not pairs:
        return "each with its own evidence"
    pair = max(set(pairs), key=pairs.count)
    return f"{pairs.count(pair)} {STATE_WORDS[pair[0]]} become {STATE_WORDS[pair[1]]}"


def _table(said: Sequence[ReplayedSpan]) -> MaintenanceTable:
    rows = [
        [
            exact(each.span.from_),
            STATE_WORDS[each.state],
            ", ".join(short(code) for code in each.reasons) or "no clause matched",
        ]
        for each in reversed(said)
    ]
    heads = [f"From, {zone_word()}", "Replayed decision", "Because"]
    further = max(len(rows) - TABLE_MOST, 0)
    return MaintenanceTable("Policy, replayed", heads, rows[:TABLE_MOST], further)
