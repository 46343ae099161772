"""Compact SVG of 90 daily bars.

All fully good days are one path. Every other day has a title, and a run of unmeasured days, or of
days without data yet, has one title. The heights equal those of the console. A day that was
degraded but never down hangs amber.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import sqrt
from typing import Final

from markupsafe import Markup

from ....storage.core.sli import Split
from ....storage.status_pages.rules.status_page import ComponentDay
from ...ui.plots import svg
from ...ui.plots.uptime_days import BEFORE, DOWN_LEAST, HEIGHT, bar, has_gap
from .language import days_range

# Past days do not change. A page of 50 components has 4 500 of them, each of about 600 bytes.
DAYS_KEPT: Final = 10_000
# Width of a day, and the margin on each side of its bar.
COLUMN: Final = 10
EDGE: Final = 1
# Height of the maintenance band, which is drawn over the bar.
BAND: Final = 6


def bars(
    days: Sequence[ComponentDay], names: Sequence[str], said: Sequence[str], label: str
) -> Markup:
    """Returns the SVG. `said` is the text of each day, `label` describes the plot."""
    whole: list[str] = []
    rest: list[Markup] = []
    for at, until in _runs(days):
        if is_plain(days[at]):
            whole.append(_stretch(at, until))
        else:
            name = names[at] if until - at == 1 else days_range(names[at], names[until - 1])
            rest.append(_column(at, until, days[at], f"{name}: {said[at]}"))
    return svg.element(
        "svg",
        *([svg.element("path", d="".join(whole), fill="url(#good)")] if whole else []),
        *rest,
        class_="bars",
        viewBox=f"0 0 {COLUMN * len(days)} {HEIGHT}",
        preserveAspectRatio="none",
        role="img",
        aria_label=label,
    )


def _runs(days: Sequence[ComponentDay]) -> list[tuple[int, int]]:
    """Returns runs of days that are drawn as one: fully good, not measured, or without data yet."""
    found: list[tuple[int, int]] = []
    kind = ""
    for at, day in enumerate(days):
        was, kind = kind, _kind(day)
        if kind and kind == was:
            found[-1] = (found[-1][0], at + 1)
        else:
            found.append((at, at + 1))
    return found


def _kind(day: ComponentDay) -> str:
    """Returns the kind of a day that is drawn together with its neighbours, or an empty text."""
    if is_before(day):
        return "before"
    return "plain" if is_plain(day) else "nothing" if is_nothing(day) else ""


def is_before(day: ComponentDay) -> bool:
    """Returns whether no data was due on the day, such as before the start of the component."""
    return not day.split.range_us


def is_nothing(day: ComponentDay) -> bool:
    """Returns whether the day has neither measured time nor maintenance."""
    return not day.split.measured_us and not day.split.excluded_us


def is_plain(day: ComponentDay) -> bool:
    """Returns whether the day is fully good at the resolution of a bar."""
    split = day.split
    return bool(
        split.good_us
        and not split.bad_us
        and not split.excluded_us
        and not day.degraded_us
        and not has_gap(split)
    )


def heights(day: ComponentDay) -> list[tuple[str, float]]:
    """Returns (kind, height) from the top. The heights add up to the full height.

    A day without data yet is a low line at the bottom.
    """
    if is_before(day):
        return [("blank", HEIGHT - BEFORE), ("gap", BEFORE)]
    shape = bar(day.split)
    parts = [("down", shape.down), ("gap", shape.gap), ("up", shape.up), ("plain", shape.plain)]
    if day.degraded_us and not shape.down:
        hung = min(HEIGHT * max(sqrt(_share(day.degraded_us, day.split)), DOWN_LEAST), shape.up)
        parts = [("degraded", hung), ("gap", shape.gap), ("up", shape.up - hung)]
    return [(name, height) for name, height in parts if height > 0]


def _share(us: int, split: Split) -> float:
    return us / split.range_us


def _stretch(from_: int, until: int) -> str:
    return f"M{COLUMN * from_} 0h{COLUMN * (until - from_)}v{HEIGHT}h-{COLUMN * (until - from_)}"


@lru_cache(maxsize=DAYS_KEPT)
def _column(at: int, until: int, day: ComponentDay, said: str) -> Markup:
    x, width, y = COLUMN * at + EDGE, COLUMN * (until - at) - 2 * EDGE, 0.0
    found: list[Markup] = []
    for name, height in heights(day):
        # A gap in the background colour separates two parts.
        inset = 1 if found else 0
        if name != "blank":
            found.append(_piece(name, x, width, y + inset, max(height - inset, 1)))
        y += height
    if day.split.excluded_us:
        found.append(_piece("band", x, width, (HEIGHT - BAND) / 2, BAND))
    return svg.element("g", svg.title(said), *found)


def _piece(name: str, x: int, width: int, y: float, height: float) -> Markup:
    # Only a stroked path needs to be closed. A fill closes it implicitly.
    close = "z" if name == "band" else ""
    path = f"M{x} {round(y)}h{width}v{round(y + height) - round(y)}h-{width}{close}"
    if name == "gap":
        return svg.element("path", d=path, fill=svg.HATCH)
    return svg.element("path", d=path, class_=_CLASSES[name])


_CLASSES: Final = {
    "down": "f-down",
    "degraded": "f-degraded",
    "up": "f-up",
    "plain": "f-mtint",
    "band": "f-maint",
}
