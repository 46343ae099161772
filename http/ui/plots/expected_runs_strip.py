"""Strip of the expected-run ledger. It shows the work of Leadline, not the target."""

from collections.abc import Callable, Sequence
from enum import StrEnum

from markupsafe import Markup

from . import svg
from .heartbeat_strip import SLOT, stretches

HEIGHT = 20


class RunSlot(StrEnum):
    """Outcome of a slot's run, worst last. Each value is a CSS class."""

    AWAY = "r-away"
    COVERED = "r-covered"
    RESERVED = "r-reserved"
    COVERED_LATE = "r-late"
    WITHHELD = "r-withheld"
    MISSED = "r-missed"


SAID = {
    RunSlot.COVERED: "on time",
    RunSlot.COVERED_LATE: "late",
    RunSlot.MISSED: "missed",
    RunSlot.WITHHELD: "excused",
    RunSlot.RESERVED: "scheduled",
}
_OUTLINED = (RunSlot.COVERED_LATE, RunSlot.RESERVED)


def worst(runs: Sequence[RunSlot]) -> RunSlot:
    """Returns the state of a slot with several runs."""
    order = list(RunSlot)
    return max(runs, key=order.index, default=RunSlot.AWAY)


def ledger(
    runs: Sequence[RunSlot], totals: dict[RunSlot, int], titled: Callable[[RunSlot, int, int], str]
) -> Markup:
    """Returns the strip. `totals` counts runs, as a slot can contain several."""
    drawn = [
        _stretch(run, first, after, titled(run, first, after))
        for run, first, after in stretches(runs)
        if run is not RunSlot.AWAY
    ]
    inner = svg.stretched(len(runs) * SLOT, HEIGHT, *drawn)
    said = f"{sum(totals.values())} expected runs: {plot_text(totals)}"
    return svg.element("svg", inner, class_="runs", height=HEIGHT, role="img", aria_label=said)


def plot_text(totals: dict[RunSlot, int]) -> str:
    parts = [f"{totals[run]} {word}" for run, word in SAID.items() if totals.get(run)]
    return ", ".join(parts) or "none yet"


def _stretch(run: RunSlot, first: int, after: int, title: str) -> Markup:
    start, length = first * SLOT + 1, (after - first) * SLOT - 2
    if run in _OUTLINED:
        boxes = [f"M{at * SLOT + 1} 4h8v12h-8z" for at in range(first, after)]
        return svg.element("path", svg.title(title), class_=run.value, d="".join(boxes))
    middle = 17 if run is RunSlot.WITHHELD else HEIGHT // 2
    return svg.element("path", svg.title(title), class_=run.value, d=f"M{start} {middle}h{length}")
