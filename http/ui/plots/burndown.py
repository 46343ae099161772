"""Burn-down plot: the share of an error budget that is left over its window.

The line never rises. It breaks at gaps, which are hatched, and continues at the same level, because
unknown time uses no budget. An overdrawn budget is drawn red at the bottom. A dotted line is burn
rate 1, which uses the budget up exactly.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby

from markupsafe import Markup

from . import svg
from .latency import Tick

TOP = 8
HEIGHT = 180
FOOT = 26
WIDTH = 1000
LINES = 4
PARTLY_HIGH = 6
OVERDRAWN_HIGH = 5
# Smallest distance between two cost labels, as a share of the width.
COST_APART = 0.14
EDGE = 0.03


class SegmentKind(StrEnum):
    """Knowledge about a step."""

    MEASURED = "measured"
    # Partly measured.
    PARTLY = "partly"
    GAP = "gap"
    MAINTENANCE = "maintenance"


_DRAWN = (SegmentKind.MEASURED, SegmentKind.PARTLY)
_SAID = {
    SegmentKind.GAP: "no data",
    SegmentKind.PARTLY: "not all measured",
    SegmentKind.MAINTENANCE: "maintenance",
}


@dataclass(frozen=True, slots=True)
class BudgetStep:
    """Step of the budget. `from_` and `to` are shares of the window.

    Each step begins at the end of the previous one. `left` is the share of the budget at its end,
    negative if it is overdrawn. `cost` labels the fall if it is not empty.
    """

    from_: float
    to: float
    kind: SegmentKind
    left: float
    cost: str = ""


def burndown(steps: Sequence[BudgetStep], ticks: Sequence[Tick], label: str) -> Markup:
    """Returns both columns of the plot: the scale, and the plot with its times."""
    return svg.joined(_scale(), _plot(steps, ticks, f"{label} {plot_text(steps)}"))


def plot_text(steps: Sequence[BudgetStep]) -> str:
    """Returns the plot as a sentence."""
    drawn = [step for step in steps if step.kind in _DRAWN]
    if not drawn:
        return "Nothing was measured."
    last = drawn[-1].left
    said = f"{whole_percent(last)} left" if last > 0 else "budget used up"
    falls = sum(bool(step.cost) for step in steps)
    if falls:
        said += f", {falls} {'fall' if falls == 1 else 'falls'}"
    gaps = sum(kind is SegmentKind.GAP for kind, _ in groupby(step.kind for step in steps))
    if gaps:
        said += f", {gaps} {'gap' if gaps == 1 else 'gaps'} without data"
    return f"{said[:1].upper()}{said[1:]}."


def whole_percent(share: float) -> str:
    """Returns a percentage rounded down, so that the remaining budget is never overstated."""
    return f"{int(100 * share // 1) if share < 1 else 100}%"


def _scale() -> Markup:
    texts = [
        svg.element("text", f"{25 * n}%", class_="end", x=34, y=_y(n / LINES) + 4)
        for n in range(LINES + 1)
    ]
    return svg.element("svg", *texts, height=TOP + HEIGHT + FOOT, aria_hidden="true")


def _y(share: float) -> float:
    return TOP + HEIGHT * (1 - share)


def _plot(steps: Sequence[BudgetStep], ticks: Sequence[Tick], said: str) -> Markup:
    parts: list[Markup] = []
    for n in range(LINES + 1):
        class_ = "grid" if n else "axis"
        parts.append(
            svg.element("line", class_=class_, x2="100%", y1=_y(n / LINES), y2=_y(n / LINES))
        )
    for kind, group in groupby(steps, key=lambda step: step.kind):
        run = list(group)
        parts += _band(kind, run[0].from_, run[-1].to)
    lines = [shape for run in _runs(steps) for shape in _stretch(*run)]
    pace = svg.element("path", class_="pace", d=f"M0 0L{WIDTH} {HEIGHT}")
    parts.append(
        svg.element(
            "g", svg.stretched(WIDTH, HEIGHT, *lines, pace), transform=f"translate(0 {TOP})"
        )
    )
    parts += _overdrawn(steps)
    parts += _costs(steps)
    parts += [_tick(tick) for tick in ticks]
    return svg.element("svg", *parts, height=TOP + HEIGHT + FOOT, role="img", aria_label=said)


def _band(kind: SegmentKind, from_: float, to: float) -> list[Markup]:
    """Returns the background of a step that is not fully measured."""
    place = {"x": svg.share(from_, 1), "width": svg.share(to - from_, 1)}
    if kind is SegmentKind.MEASURED:
        return []
    title = svg.title(_SAID[kind])
    match kind:
        case SegmentKind.GAP:
            return [svg.element("rect", title, **place, y=TOP, height=HEIGHT, fill=svg.HATCH)]
        case SegmentKind.PARTLY:
            y = TOP + HEIGHT - PARTLY_HIGH
            return [svg.element("rect", title, **place, y=y, height=PARTLY_HIGH, fill=svg.HATCH)]
        case _:
            return [
                svg.element("rect", title, **place, y=TOP, height=HEIGHT, class_="f-mtint"),
                svg.element("rect", **place, y=TOP, height=4, class_="f-maint"),
            ]


def _runs(steps: Sequence[BudgetStep]) -> list[tuple[float, list[BudgetStep]]]:
    """Returns runs of drawn steps, each with the share that was left before it."""
    found: list[tuple[float, list[BudgetStep]]] = []
    before = 1.0
    for drawn, group in groupby(steps, key=lambda step: step.kind in _DRAWN):
        run = list(group)
        if drawn:
            found.append((before, run))
        before = run[-1].left
    return found


def _stretch(before: float, run: Sequence[BudgetStep]) -> list[Markup]:
    points = [(run[0].from_, before), *((step.to, step.left) for step in run)]
    kept = [
        point
        for n, point in enumerate(points)
        if n in (0, len(points) - 1) or not points[n - 1][1] == point[1] == points[n + 1][1]
    ]
    line = "L".join(f"{svg.trimmed(WIDTH * x)} {_level(left)}" for x, left in kept)
    foot = f"{svg.trimmed(WIDTH * kept[-1][0])} {HEIGHT}L{svg.trimmed(WIDTH * kept[0][0])} {HEIGHT}"
    return [
        svg.element("path", class_="area", d=f"M{line}L{foot}z"),
        svg.element("path", class_="line", d=f"M{line}"),
    ]


def _level(left: float) -> str:
    return svg.trimmed(HEIGHT * (1 - min(max(left, 0.0), 1.0)))


def _overdrawn(steps: Sequence[BudgetStep]) -> list[Markup]:
    """Returns red marks at the bottom for an overdrawn budget."""
    over = [step for step in steps if step.left < 0 and step.kind in _DRAWN]
    return [
        svg.element(
            "rect",
            svg.title("budget exceeded"),
            class_="f-down",
            x=svg.share(step.from_, 1),
            width=svg.share(to - step.from_, 1),
            y=TOP + HEIGHT - OVERDRAWN_HIGH,
            height=OVERDRAWN_HIGH,
        )
        for step, to in _joined(over)
    ]


def _joined(steps: Sequence[BudgetStep]) -> list[tuple[BudgetStep, float]]:
    """Returns (first step, end) of merged neighbours."""
    found: list[tuple[BudgetStep, float]] = []
    for step in steps:
        if found and found[-1][1] == step.from_:
            found[-1] = (found[-1][0], step.to)
        else:
            found.append((step, step.to))
    return found


def _costs(steps: Sequence[BudgetStep]) -> list[Markup]:
    """Returns the cost labels, except labels that would overlap the previous one."""
    found = []
    free_from = 0.0
    for step in steps:
        if not step.cost or step.to < free_from:
            continue
        free_from = step.to + COST_APART
        at_edge = step.to > 1 - COST_APART
        # Keep the label above the bottom and below the top.
        y = min(max(_y(max(step.left, 0.0)) - 6, TOP + 14), TOP + HEIGHT - 10)
        found.append(
            svg.element(
                "text",
                step.cost,
                class_="halo end" if at_edge else "halo",
                x=svg.share(step.from_ - 0.008 if at_edge else step.to + 0.008, 1),
                y=y,
            )
        )
    return found


def _tick(tick: Tick) -> Markup:
    # Labels at an edge extend inwards.
    class_ = "start" if tick.at < EDGE else "end" if tick.at > 1 - EDGE else "mid"
    class_ = f"{class_} wide" if tick.minor else class_
    return svg.element(
        "text", tick.text, class_=class_, x=svg.share(tick.at, 1), y=TOP + HEIGHT + 20
    )
