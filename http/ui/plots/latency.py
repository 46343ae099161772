"""Latency of good results: a line of the median, a band up to the 95th percentile.

The line is interrupted by gaps, maintenance and downtime, which have their own marks. An
interpolated value would be invented.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import ceil, floor, log10

from markupsafe import Markup

from . import svg
from .heartbeat_strip import stretches

TOP = 18
HEIGHT = 200
FOOT = 22
WIDTH = 1000
LINES = 4
BEFORE_HIGH = 6
# Smallest distance between the centres of two names, as a share of the width.
NAME_APART = 0.13
_STEPS = (1, 2, 2.5, 5, 10)


class LatencyStep(StrEnum):
    """State of a step of the time axis."""

    POINT = "point"
    GAP = "gap"
    DOWN = "down"
    MAINTENANCE = "maintenance"
    # Before the creation of the monitor.
    BEFORE = "before"
    # Not over yet: not drawn.
    AWAY = "away"


STEP_WORDS = {
    LatencyStep.GAP: "no data",
    LatencyStep.DOWN: "down",
    LatencyStep.MAINTENANCE: "maintenance",
    LatencyStep.BEFORE: svg.BEFORE_SAID,
}


@dataclass(frozen=True, slots=True)
class LatencyValue:
    """Value of a step. Only a POINT has `p50` and `p95`, in ms."""

    kind: LatencyStep
    p50: int = 0
    p95: int = 0


@dataclass(frozen=True, slots=True)
class Tick:
    """Label under the axis, at a share of it. `minor` labels are hidden on narrow screens."""

    at: float
    text: str
    minor: bool = False


def latency(points: Sequence[LatencyValue], ticks: Sequence[Tick], label: str) -> Markup:
    """Returns both columns of the plot: the scale, and the plot with its times.

    A script moves the crosshair and the selection, which are hidden without it.
    """
    top = ceiling(max((point.p95 for point in points), default=0))
    cross = svg.element(
        "g",
        svg.element("line", class_="xl", y1=TOP, y2=TOP + HEIGHT),
        svg.element("circle", class_="dot", r=4),
        data_cross="",
        visibility="hidden",
    )
    brush = svg.element("rect", class_="brush", y=TOP, height=HEIGHT, visibility="hidden")
    return svg.joined(_scale(top), _plot(points, ticks, top, label, cross, brush))


def values_of(points: Sequence[LatencyValue], counts: Sequence[tuple[int, int]]) -> str:
    """Returns the exact values for the script: steps of `p50 p95 good bad`, or the state."""
    found = []
    for point, (good, bad) in zip(points, counts, strict=True):
        if point.kind is LatencyStep.POINT:
            found.append(f"{point.p50} {point.p95} {good} {bad}")
        else:
            found.append(STEP_WORDS.get(point.kind, ""))
    return ";".join(found)


def ceiling(largest: int) -> float:
    """Returns the highest gridline: four equal steps of a round number."""
    if largest <= 0:
        return float(LINES)
    rough = largest / LINES
    unit = 10.0 ** floor(log10(rough))
    nice = next(step for step in _STEPS if step * unit >= rough)
    return max(nice * unit, 1) * LINES


def plot_text(points: Sequence[LatencyValue]) -> str:
    """Returns the plot as a sentence."""
    good = [point for point in points if point.kind is LatencyStep.POINT]
    if not good:
        said = "No successful check in this range"
    else:
        low, high = min(p.p50 for p in good), max(p.p50 for p in good)
        said = f"Median between {low} and {high} ms, 95th percentile up to "
        said += f"{max(p.p95 for p in good)} ms"
    runs = [kind for kind, _, _ in stretches([point.kind for point in points])]
    for kind, word in ((LatencyStep.GAP, "gap"), (LatencyStep.DOWN, "stretch down")):
        many = runs.count(kind)
        if many:
            said += f", {many} {word}{'s' if many > 1 and kind is LatencyStep.GAP else ''}"
    return f"{said}."


def _scale(top: float) -> Markup:
    texts = [
        svg.element("text", f"{_value(top * n / LINES)}", class_="end", x=30, y=_y(n) + 4.0)
        for n in range(LINES + 1)
    ]
    unit = svg.element("text", "ms", class_="end", x=30, y=TOP - 8)
    return svg.element("svg", unit, *texts, height=TOP + HEIGHT + FOOT, aria_hidden="true")


def _value(value: float) -> str:
    return f"{ceil(value):,}".replace(",", "\u202f") if value >= 10 else svg.trimmed(value)


def _y(line: int) -> float:
    return TOP + HEIGHT * (LINES - line) / LINES


def _plot(
    points: Sequence[LatencyValue], ticks: Sequence[Tick], top: float, label: str, *over: Markup
) -> Markup:
    runs = stretches([point.kind for point in points])
    many = len(points)
    parts: list[Markup] = []
    for line in range(LINES + 1):
        class_ = "grid" if line else "axis"
        parts.append(svg.element("line", class_=class_, x2="100%", y1=_y(line), y2=_y(line)))
    for kind, first, after in runs:
        parts += _band(kind, first, after, many)
    drawn = [
        shape
        for kind, first, after in runs
        if kind is LatencyStep.POINT
        for shape in _stretch(points, first, after, top)
    ]
    parts.append(svg.element("g", svg.stretched(WIDTH, HEIGHT, *drawn), transform=_shift()))
    parts += _names(runs, many)
    parts += [_tick(tick) for tick in ticks]
    parts += over
    return svg.element(
        "svg",
        *parts,
        height=TOP + HEIGHT + FOOT,
        role="img",
        aria_label=f"{label} {plot_text(points)}",
        data_top=f"{top:.4g}",
    )


def _shift() -> str:
    return f"translate(0 {TOP})"


def _band(kind: LatencyStep, first: int, after: int, many: int) -> list[Markup]:
    """Returns the background of steps without a line."""
    place = {"x": svg.share(first, many), "width": svg.share(after - first, many)}
    match kind:
        case LatencyStep.GAP:
            hatch = svg.element(
                "rect", svg.title("no data"), **place, y=TOP, height=HEIGHT, fill=svg.HATCH
            )
            return [hatch]
        case LatencyStep.BEFORE:
            return [svg.before(first / many, after / many, TOP + HEIGHT, BEFORE_HIGH)]
        case LatencyStep.DOWN:
            return [
                svg.element(
                    "rect", svg.title("down"), **place, y=TOP, height=HEIGHT, class_="f-dtint"
                ),
                svg.element("rect", **place, y=TOP + HEIGHT - 4, height=4, class_="f-down"),
            ]
        case LatencyStep.MAINTENANCE:
            return [
                svg.element(
                    "rect",
                    svg.title("maintenance"),
                    **place,
                    y=TOP,
                    height=HEIGHT,
                    class_="f-mtint",
                ),
                svg.element("rect", **place, y=TOP, height=4, class_="f-maint"),
            ]
        case _:
            return []


def _names(runs: Sequence[tuple[LatencyStep, int, int]], many: int) -> list[Markup]:
    """Returns the names of bands, except names that would overlap the previous one."""
    found = []
    free_from = 0.0
    for kind, first, after in runs:
        middle = (first + after) / 2 / many
        if kind not in STEP_WORDS or middle < free_from:
            continue
        free_from = middle + NAME_APART
        # Labels at an edge extend inwards.
        class_ = "end" if middle > 1 - NAME_APART / 2 else "mid"
        class_ = "start" if middle < NAME_APART / 2 else class_
        at = {"end": after / many, "start": first / many}.get(class_, middle)
        name = svg.element(
            "text", STEP_WORDS[kind], class_=f"{class_} wide", x=svg.share(at, 1), y=TOP - 6
        )
        found.append(name)
    return found


def _stretch(points: Sequence[LatencyValue], first: int, after: int, top: float) -> list[Markup]:
    """Returns line and band of adjacent points. A single point is as wide as its step."""
    wide = WIDTH / len(points)
    if after - first == 1:
        at = [first * wide, after * wide]
        chosen = [points[first], points[first]]
    else:
        at = [(n + 0.5) * wide for n in range(first, after)]
        chosen = list(points[first:after])
    middle = [f"{svg.trimmed(x)} {_level(p.p50, top)}" for x, p in zip(at, chosen, strict=True)]
    upper = [f"{svg.trimmed(x)} {_level(p.p95, top)}" for x, p in zip(at, chosen, strict=True)]
    area = f"M{'L'.join(middle)}L{'L'.join(reversed(upper))}z"
    return [
        svg.element("path", class_="area", d=area),
        svg.element("path", class_="p95", d=f"M{'L'.join(upper)}"),
        svg.element("path", class_="line", d=f"M{'L'.join(middle)}"),
    ]


def _level(value: int, top: float) -> str:
    return f"{HEIGHT - HEIGHT * value / top:.1f}".removesuffix(".0")


def _tick(tick: Tick) -> Markup:
    class_ = "mid wide" if tick.minor else "mid"
    return svg.element(
        "text", tick.text, class_=class_, x=svg.share(tick.at, 1), y=TOP + HEIGHT + 18
    )
