"""Marks of changes on a time axis, at their start. Marks that would overlap are merged."""

from collections.abc import Callable, Sequence
from typing import Final

from ...storage.changes.queries.changes import Happened
from ...storage.changes.queries.console_changes import HAPPENED_MOST
from ...storage.core.instant import Instant
from .change_text import KINDS, OUTCOMES, drawn_kind, name_of, outcome_of, short
from .data_table import exact
from .formatting import count, duration, number
from .plots.timeline_lanes import ChangeOutcomeClass, LaneMark

# Steps of the axis. A step has at most one mark per kind and outcome.
_STEPS: Final = 120


def counted(changes: Sequence[Happened]) -> str:
    """Returns the number of changes. At the read limit it states that there can be more."""
    if len(changes) < HAPPENED_MOST:
        return count(len(changes), "change")
    return f"the newest {number(HAPPENED_MOST)} changes"


def marks(
    changes: Sequence[Happened], from_: Instant, to: Instant, share: Callable[[Instant], float]
) -> list[LaneMark]:
    """Returns marks at the start of changes. `share` maps an instant to a share of the axis."""
    groups: dict[tuple[int, str, ChangeOutcomeClass], list[Happened]] = {}
    for one in sorted(changes, key=lambda each: each.change.started_at):
        at = min(max(one.change.started_at, from_), to)
        step = (at - from_) * _STEPS // max(to - from_, 1)
        groups.setdefault((step, one.change.kind, outcome_of(one.phases)), []).append(one)
    return [_mark(group, share) for group in groups.values()]


def marks_text(changes: Sequence[Happened]) -> list[tuple[Instant, str, str]]:
    """Returns (start, description, duration)."""
    return [
        (
            one.change.started_at,
            f"{short(name_of(one.change, one.ref))}, {OUTCOMES[outcome_of(one.phases)]}",
            _length(one),
        )
        for one in changes
    ]


def _mark(group: Sequence[Happened], share: Callable[[Instant], float]) -> LaneMark:
    first, last = group[0], group[-1]
    kind, outcome = first.change.kind, outcome_of(first.phases)
    from_ = share(first.change.started_at)
    if len(group) > 1:
        many = count(len(group), KINDS[kind])
        between = f"{exact(first.change.started_at)} to {exact(last.change.started_at)}"
        return LaneMark(
            from_, from_, f"{many}, {OUTCOMES[outcome]}: {between}", drawn_kind(kind), outcome
        )
    length = _length(first)
    said = f"{short(name_of(first.change, first.ref))}, {OUTCOMES[outcome]}: "
    said += exact(first.change.started_at) + (f", {length}" if length else "")
    return LaneMark(from_, share(first.change.latest_at), said, drawn_kind(kind), outcome)


def _length(one: Happened) -> str:
    """Returns the duration, empty unless both start and end are recorded."""
    if len(one.phases) < 2:
        return ""
    return duration(one.change.latest_at - one.change.started_at)
