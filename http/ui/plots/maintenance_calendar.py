"""Maintenance calendar, one row per week: named bands in lanes, and a line for now.

Overlapping bands use separate lanes. All positions are shares of a week.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from . import svg

TOP = 20
HEAD = 22
LANE = 24
BAR = 20
LANES_MOST = 5
# Share of the width below which a band has no name.
_NAMED = 0.08
_LETTERS = 110
_THINNEST = 0.004
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


@dataclass(frozen=True, slots=True)
class MaintenanceSpan:
    """Part of a maintenance within a week. `said` is the hover text."""

    from_: float
    to: float
    name: str
    said: str


@dataclass(frozen=True, slots=True)
class MaintenanceWeek:
    """`days` are the labels of the seven days."""

    days: Sequence[str]
    spans: Sequence[MaintenanceSpan]
    now: float | None = None


def windows(weeks: Sequence[MaintenanceWeek], said: str) -> Markup:
    rows = []
    top = TOP
    for week in weeks:
        high = _high(week)
        rows.append(_row(week, top, high))
        top += high
    heads = [
        svg.element("text", name, x=svg.share(n / 7 + 0.005, 1), y=12)
        for n, name in enumerate(_DAYS)
    ]
    return svg.element(
        "svg", *heads, *rows, class_="turns", height=top, role="img", aria_label=said
    )


def in_lanes(spans: Sequence[MaintenanceSpan]) -> list[tuple[int, MaintenanceSpan]]:
    """Returns (lane, span) with the first free lane of each span."""
    free: list[float] = []
    found = []
    for span in sorted(spans, key=lambda each: (each.from_, each.to)):
        lane = next((n for n, until in enumerate(free) if until <= span.from_), len(free))
        if lane == len(free):
            free.append(0.0)
        free[lane] = max(span.to, span.from_ + _THINNEST)
        found.append((lane, span))
    return found


def _high(week: MaintenanceWeek) -> int:
    deepest = max((lane for lane, _ in in_lanes(week.spans)), default=0)
    return HEAD + LANE * (min(deepest, LANES_MOST - 1) + 1) + 8


def _row(week: MaintenanceWeek, top: int, high: int) -> Markup:
    drawn = [svg.element("line", class_="grid", x1="0", x2="100%", y1=top, y2=top)]
    drawn += [_tick(n / 7, top, top + high - 6, "grid") for n in range(1, 7)]
    drawn += [
        # Narrow screens show only the first label of a week.
        svg.element(
            "text",
            text,
            class_="wide" if n else None,
            x=svg.share(n / 7 + 0.005, 1),
            y=top + 15,
        )
        for n, text in enumerate(week.days)
    ]
    hidden = 0
    for lane, span in in_lanes(week.spans):
        if lane < LANES_MOST:
            drawn += _band(span, top + HEAD + lane * LANE)
        else:
            hidden += 1
    if hidden:
        said = f"and {hidden} more"
        drawn.append(svg.element("text", said, class_="end", x="100%", y=top + 15))
    if week.now is not None:
        drawn.append(_tick(week.now, top + 4, top + high - 4, "now"))
    return svg.joined(*drawn)


def _band(span: MaintenanceSpan, y: int) -> list[Markup]:
    x = min(span.from_, 1 - _THINNEST)
    place = {"x": svg.share(x, 1), "width": svg.share(max(span.to - x, _THINNEST), 1)}
    drawn = [
        svg.element("rect", svg.title(span.said), class_="f-mtint", **place, y=y, height=BAR),
        svg.element("rect", class_="f-maint", **place, y=y, height=2),
        svg.element("rect", class_="f-maint", **place, y=y + BAR - 2, height=2),
    ]
    share = span.to - span.from_
    if share >= _NAMED:
        room = int(share * _LETTERS)
        name = span.name if len(span.name) <= room else f"{span.name[: room - 1]}…"
        drawn.append(
            svg.element("text", name, class_="who-name wide", x=svg.share(x + 0.01, 1), y=y + 14)
        )
    return drawn


def _tick(at: float, y1: int, y2: int, class_: str) -> Markup:
    x = svg.share(at, 1)
    return svg.element("line", class_=class_, x1=x, x2=x, y1=y1, y2=y2)
