"""Small plot of the latency of a component over a day, with its sentence and its table row.

A line is the median, and a band reaches to the 95th percentile. No line crosses a gap.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from ....storage.status_pages.rules.component_latency import (
    STEP_US,
    STEPS,
    ComponentLatency,
    LatencyPoint,
)
from ...ui.formatting import Moment
from ...ui.plots import svg
from ...ui.plots.heartbeat_strip import stretches
from ...ui.plots.latency import LatencyStep, ceiling
from .language import milliseconds, phrase

# Units of the drawing: a step is COLUMN wide.
COLUMN: Final = 10
HEIGHT: Final = 48


@dataclass(frozen=True, slots=True)
class LatencyItem:
    """Latency of a component. Without a plot, `text` is the reason.

    `row` is (median, 95th percentile, measured half hours).
    """

    text: str
    plot: Markup | None
    until: Moment
    row: tuple[str, str, str]


def latency_item(name: str, found: ComponentLatency, until: Moment) -> LatencyItem:
    """Returns the item. `name` is the name on the page, `until` the end of the plot."""
    if found.withheld is not None:
        why = phrase(f"latency.{found.withheld.value}")
        return LatencyItem(why, None, until, (why, "", phrase("latency.measured", n=0, all=STEPS)))
    median = _median(found.points)
    highest = milliseconds(max(one.p95_ms for one in found.points))
    text = phrase("latency.text", median=median, highest=highest)
    gaps = STEPS - len(found.points)
    label = phrase("latency.label", name=name, text=text)
    if gaps:
        label += f" {phrase('latency.gaps', n=gaps, all=STEPS)}"
    up_to = phrase("latency.up_to", highest=highest)
    measured = phrase("latency.measured", n=len(found.points), all=STEPS)
    return LatencyItem(text, _drawn(found, label), until, (median, up_to, measured))


def _median(points: Sequence[LatencyPoint]) -> str:
    low, high = min(one.p50_ms for one in points), max(one.p50_ms for one in points)
    if low == high:
        return milliseconds(low)
    return phrase("latency.range", **{"from": milliseconds(low), "to": milliseconds(high)})


def _drawn(found: ComponentLatency, label: str) -> Markup:
    steps: list[LatencyPoint | None] = [None] * STEPS
    for one in found.points:
        steps[(one.at - found.from_at) // STEP_US] = one
    top = ceiling(max(one.p95_ms for one in found.points))
    drawn: list[Markup] = []
    kinds = [LatencyStep.GAP if one is None else LatencyStep.POINT for one in steps]
    for kind, first, after in stretches(kinds):
        if kind is LatencyStep.GAP:
            path = f"M{COLUMN * first} 0h{COLUMN * (after - first)}v{HEIGHT}H{COLUMN * first}"
            drawn.append(svg.element("path", d=path, fill=svg.HATCH))
        else:
            run = [one for one in steps[first:after] if one is not None]
            drawn += _run(run, first, top)
    return svg.element(
        "svg",
        *drawn,
        class_="latency",
        viewBox=f"0 0 {COLUMN * STEPS} {HEIGHT}",
        preserveAspectRatio="none",
        role="img",
        aria_label=label,
    )


def _run(run: Sequence[LatencyPoint], first: int, top: float) -> list[Markup]:
    """Returns band and line of adjacent steps, which reach to the edges of the run."""
    at = [COLUMN * (first + n) + COLUMN // 2 for n in range(len(run))]
    at = [COLUMN * first, *at, COLUMN * (first + len(run))]
    ends = [run[0], *run, run[-1]]
    middle = [f"{x} {_level(one.p50_ms, top)}" for x, one in zip(at, ends, strict=True)]
    upper = [f"{x} {_level(one.p95_ms, top)}" for x, one in zip(at, ends, strict=True)]
    line = "L".join(middle)
    band = f"M{line}L{'L'.join(reversed(upper))}z"
    return [
        svg.element("path", class_="area", d=band),
        svg.element("path", class_="line", d=f"M{line}"),
    ]


def _level(value: int, top: float) -> str:
    # Half of the stroke stays inside the drawing.
    return svg.trimmed(round(1 + (HEIGHT - 2) * (1 - value / top), 1))
