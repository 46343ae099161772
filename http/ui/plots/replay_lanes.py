"""Policy replay: one lane per policy over the same span, and the decisions below.

Stricter states have taller bars. Unknown time is hatched.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from . import svg
from .latency import Tick

LANE = 56
BASE = 40
FOOT = 24
# Smallest visible width, as a share of the plot.
THINNEST = 0.003
EDGE = 0.03
_HIGH = {"ALLOW": 6, "WARN": 14, "UNKNOWN": 14, "BLOCK": 24, "NOT_CONFIGURED": 2}
_FILL = {"ALLOW": "f-up", "WARN": "f-degraded", "BLOCK": "f-down", "NOT_CONFIGURED": "f-base"}


@dataclass(frozen=True, slots=True)
class ReplayBar:
    """Bar of a state. `from_` and `to` are shares of the width. `said` is the hover text."""

    from_: float
    to: float
    state: str
    said: str


@dataclass(frozen=True, slots=True)
class ReplayedMark:
    """Decision of the ledger. `differs` is true if the draft would decide otherwise."""

    at: float
    differs: bool
    said: str


def replay(
    lanes: Sequence[tuple[str, Sequence[ReplayBar]]],
    made: Sequence[ReplayedMark],
    ticks: Sequence[Tick],
    said: str,
) -> Markup:
    parts: list[Markup] = []
    for n, (name, bars) in enumerate(lanes):
        top = n * LANE
        parts.append(svg.element("text", name, x=0, y=top + 10))
        parts += [_bar(bar, top + BASE) for bar in bars]
    top = len(lanes) * LANE
    parts.append(svg.element("text", "Decisions made", x=0, y=top + 10))
    parts += [_made(one, top + 32) for one in made]
    height = top + 40
    parts += [_tick(tick, height) for tick in ticks]
    return svg.element("svg", *parts, height=height + FOOT, role="img", aria_label=said)


def _bar(bar: ReplayBar, base: int) -> Markup:
    high = _HIGH[bar.state]
    return svg.element(
        "rect",
        svg.title(bar.said),
        x=svg.share(min(bar.from_, 1 - THINNEST), 1),
        width=svg.share(max(bar.to - bar.from_, THINNEST), 1),
        y=base - high,
        height=high,
        class_=_FILL.get(bar.state),
        fill=None if bar.state in _FILL else svg.HATCH,
    )


def _made(one: ReplayedMark, base: int) -> Markup:
    high, wide = (16, 3) if one.differs else (10, 1.5)
    return svg.element(
        "rect",
        svg.title(one.said),
        class_="f-ink" if one.differs else "f-data",
        x=svg.share(min(one.at, 1 - THINNEST), 1),
        width=wide,
        y=base - high,
        height=high,
    )


def _tick(tick: Tick, height: int) -> Markup:
    # Labels at an edge extend inwards.
    class_ = "start" if tick.at < EDGE else "end" if tick.at > 1 - EDGE else "mid"
    class_ = f"{class_} wide" if tick.minor else class_
    return svg.element("text", tick.text, class_=class_, x=svg.share(tick.at, 1), y=height + 18)
