"""What policies would have said over the same time, lane under lane: the stronger the answer, the
taller its bar. What nobody can know is hatched. Below them the decisions that were made.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from . import svg
from .latency import Tick

LANE = 56
BASE = 40
FOOT = 24
# Narrower than this nothing is seen: a share of the width.
THINNEST = 0.003
EDGE = 0.03
_HIGH = {"ALLOW": 6, "WARN": 14, "UNKNOWN": 14, "BLOCK": 24, "NOT_CONFIGURED": 2}
_FILL = {"ALLOW": "f-up", "WARN": "f-degraded", "BLOCK": "f-down", "NOT_CONFIGURED": "f-base"}


@dataclass(frozen=True, slots=True)
class ReplayBar:
    """From and to are shares of the width; `said` is told on hover."""

    from_: float
    to: float
    state: str
    said: str


@dataclass(frozen=True, slots=True)
class ReplayedMark:
    """A decision that was made; `differs` where the draft would have said something else."""

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
    # At an edge a name grows inwards.
    class_ = "start" if tick.at < EDGE else "end" if tick.at > 1 - EDGE else "mid"
    class_ = f"{class_} wide" if tick.minor else class_
    return svg.element("text", tick.text, class_=class_, x=svg.share(tick.at, 1), y=height + 18)
