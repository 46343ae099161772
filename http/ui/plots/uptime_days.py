"""Ninety daily bars: downtime at the top, time without data hatched below it.

The height of downtime is the square root of its share, with a lower bound, so that short downtime
is visible.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from markupsafe import Markup

from ....storage.core.sli import Split
from . import svg

HEIGHT = 36
DOWN_LEAST = 0.22
GAP_LEAST = 0.1
BAND = 3
THINNEST = 0.1
BEFORE = 6


@dataclass(frozen=True, slots=True)
class UptimeDay:
    """`name` is the date as text. `said` is the hover text."""

    name: str
    split: Split
    said: str


@dataclass(frozen=True, slots=True)
class UptimeBar:
    """Heights from the top, in units of HEIGHT. They add up to HEIGHT."""

    down: float
    gap: float
    up: float
    # Maintenance without measured time.
    plain: float
    maintenance: bool


def days(bars: Sequence[UptimeDay], label: str) -> Markup:
    columns = [_column(at, len(bars), day) for at, day in enumerate(bars)]
    said = f"{label}: {plot_text(bars)}"
    return svg.element("svg", *columns, class_="days", height=HEIGHT, role="img", aria_label=said)


def plot_text(bars: Sequence[UptimeDay]) -> str:
    down = sum(day.split.bad_us > 0 for day in bars)
    gaps = sum(has_gap(day.split) for day in bars)
    maintained = sum(day.split.excluded_us > 0 for day in bars)
    parts = [f"{down} with time down", f"{gaps} without full data"]
    if maintained:
        parts.append(f"{maintained} with maintenance")
    return f"{len(bars)} days, {', '.join(parts)}"


def has_gap(split: Split) -> bool:
    return not split.range_us or 100 * split.unknown_us > split.range_us


def bar(split: Split) -> UptimeBar:
    """Returns the heights of a day's bar."""
    if not split.range_us:
        return UptimeBar(0, HEIGHT, 0, 0, maintenance=False)
    down = gap = 0.0
    if split.bad_us:
        down = HEIGHT * max(sqrt(split.bad_us / split.range_us), DOWN_LEAST)
    if has_gap(split):
        gap = HEIGHT * max(split.unknown_us / split.range_us, GAP_LEAST)
        # A gap stays visible regardless of the downtime.
        down = min(down, HEIGHT * (1 - GAP_LEAST))
    gap = min(gap, HEIGHT - down)
    rest = HEIGHT - down - gap
    maintained = split.excluded_us > 0
    if split.good_us:
        return UptimeBar(down, gap, rest, 0, maintained)
    if maintained:
        return UptimeBar(down, gap, 0, rest, maintained)
    # Without good time, the other parts fill the bar.
    if gap or not down:
        return UptimeBar(down, gap + rest, 0, 0, maintained)
    return UptimeBar(HEIGHT, 0, 0, 0, maintained)


def _column(at: int, many: int, day: UptimeDay) -> Markup:
    shape = bar(day.split)
    parts = []
    if not day.split.range_us:
        line = svg.before(at / many, (at + 1) / many, HEIGHT, BEFORE, said="")
        return svg.element("g", svg.title(f"{day.name}: {day.said}"), line)
    place = {"x": svg.share(at + 0.1, many), "width": svg.share(0.8, many)}
    y = 0.0
    for height, class_ in (
        (shape.down, "f-down"),
        (shape.gap, None),
        (shape.up, "f-up"),
        (shape.plain, "f-mtint"),
    ):
        inset = 1 if y else 0
        if height - inset >= THINNEST:
            fill = None if class_ else svg.HATCH
            parts.append(
                svg.element(
                    "rect", **place, y=y + inset, height=height - inset, class_=class_, fill=fill
                )
            )
        y += height
    if shape.maintenance:
        top = min(shape.down + shape.gap + BAND, HEIGHT - BAND)
        parts.append(svg.element("rect", **place, y=top, height=BAND, class_="f-maint"))
    return svg.element("g", svg.title(f"{day.name}: {day.said}"), *parts)
