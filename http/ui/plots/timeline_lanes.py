"""Lanes on one time axis: state, incidents, changes, maintenance and revisions.

The state lane is covered completely, except for the normal lag of sealing. Unknown time is hatched.
Time before the start of the service is a low hatched line.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from markupsafe import Markup

from . import svg
from .latency import Tick

LANE = 42
HEAD = 14
FOOT = 24
# Smallest visible width, as a share of the plot.
THINNEST = 0.004
BEFORE_HIGH = 6
NAME_APART = 0.05
EDGE = 0.03


class ServiceState(StrEnum):
    """State of a span, worst first. A span with several states shows the worst."""

    DOWN = "down"
    UNKNOWN = "unknown"
    DEGRADED = "degraded"
    MAINTENANCE = "maintenance"
    HEALTHY = "healthy"
    # Before the start of the service.
    BEFORE = "before"


@dataclass(frozen=True, slots=True)
class Band:
    """Band of a lane. `from_` and `to` are shares of the width. `said` is the hover text."""

    from_: float
    to: float
    said: str


@dataclass(frozen=True, slots=True)
class StateBand(Band):
    was: ServiceState


class ChangeSymbolKind(StrEnum):
    """Kind of a change. Each value is an SVG symbol."""

    DEPLOY = "c-deploy"
    ROLLBACK = "c-rollback"
    FLAG = "c-flag"


class ChangeOutcomeClass(StrEnum):
    """Outcome of a change. Each value is a CSS class."""

    GOING = "going"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class LaneMark(Band):
    """Change at its start. `to` is greater than `from_` if its duration is known."""

    kind: ChangeSymbolKind
    outcome: ChangeOutcomeClass


@dataclass(frozen=True, slots=True)
class Divider:
    """Named vertical line through all lanes."""

    at: float
    name: str
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lanes:
    """Data of the lanes. None omits a lane; an empty sequence draws an empty lane."""

    changes: Sequence[LaneMark]
    states: Sequence[StateBand]
    incidents: Sequence[Band]
    maintenance: Sequence[Band] | None = None
    cuts: Sequence[Divider] | None = None
    ticks: Sequence[Tick]


_HIGH = {
    ServiceState.HEALTHY: 8,
    ServiceState.DEGRADED: 12,
    ServiceState.UNKNOWN: 12,
    ServiceState.DOWN: 16,
}
_SIZE: Final = 12
# Additional symbol of unsuccessful outcomes, so that colour is not the only difference.
_SIGNS: Final = {ChangeOutcomeClass.FAILED: "c-failed", ChangeOutcomeClass.CANCELLED: "c-cancelled"}


def lanes(drawn: Lanes, said: str) -> Markup:
    named = _lane_name(drawn)
    height = LANE * len(named)
    parts: list[Markup] = []
    for n, (name, _) in enumerate(named):
        parts.append(svg.element("text", name, x=0, y=n * LANE + HEAD - 2))
        y = (n + 1) * LANE
        parts.append(svg.element("line", class_="grid", x1="0", x2="100%", y1=y, y2=y))
    for tick in drawn.ticks:
        parts.append(_lane_line(tick.at, "grid", HEAD + 4, height))
    for n, (_, shapes) in enumerate(named):
        if shapes:
            parts.append(svg.element("svg", *shapes, y=n * LANE, height=LANE))
    parts += _cuts(drawn.cuts or (), height)
    parts += [_tick(tick, height) for tick in drawn.ticks]
    return svg.element("svg", *parts, height=height + FOOT, role="img", aria_label=said)


def _lane_name(drawn: Lanes) -> list[tuple[str, list[Markup]]]:
    """Returns the names and shapes of the lanes."""
    found = [
        ("State", [shape for state in drawn.states for shape in _state(state)]),
        ("Incidents", [_bar(band, 24, "f-ink") for band in drawn.incidents]),
        ("Changes", [shape for mark in drawn.changes for shape in _mark(mark)]),
    ]
    if drawn.maintenance is not None:
        planned = [shape for band in drawn.maintenance for shape in _planned(band)]
        found.append(("Maintenance", planned))
    if drawn.cuts is not None:
        found.append(("Revisions", []))
    return found


def change_sign(kind: ChangeSymbolKind, outcome: ChangeOutcomeClass) -> list[str]:
    """Returns the symbols that are drawn on top of each other for a change."""
    return [kind.value, *([_SIGNS[outcome]] if outcome in _SIGNS else [])]


def _mark(mark: LaneMark) -> list[Markup]:
    """Returns the symbol, centred at the start, and a band for the duration below it."""
    signs = [svg.element("use", href=f"#{sign}") for sign in change_sign(mark.kind, mark.outcome)]
    found = [
        svg.element(
            "svg",
            svg.title(mark.said),
            *signs,
            class_=f"change {mark.outcome.value}",
            x=svg.share(mark.from_, 1),
            y=17,
            width=_SIZE,
            height=_SIZE,
            viewBox=f"{_SIZE // 2} 0 {_SIZE} {_SIZE}",
        )
    ]
    if mark.to > mark.from_:
        found.append(_bar(mark, 32, "f-data", 4, said=False))
    return found


def _planned(band: Band) -> list[Markup]:
    return [
        _bar(band, 20, "f-mtint", 14, said=True),
        _bar(band, 20, "f-maint", 2, said=False),
        _bar(band, 32, "f-maint", 2, said=False),
    ]


def worst(found: Sequence[ServiceState]) -> ServiceState | None:
    order = list(ServiceState)
    return min(found, key=order.index, default=None)


def _state(state: StateBand) -> list[Markup]:
    place = {"x": svg.share(state.from_, 1), "width": _width(state)}
    title = svg.title(state.said)
    if state.was is ServiceState.BEFORE:
        to = min(max(state.to, state.from_ + THINNEST), 1)
        return [svg.before(state.from_, to, 34, BEFORE_HIGH, state.said)]
    if state.was is ServiceState.MAINTENANCE:
        return [
            svg.element("rect", title, **place, y=22, height=12, class_="f-mtint"),
            svg.element("rect", **place, y=22, height=3, class_="f-maint"),
        ]
    high = _HIGH[state.was]
    fill = svg.HATCH if state.was is ServiceState.UNKNOWN else None
    class_ = {
        ServiceState.DOWN: "f-down",
        ServiceState.DEGRADED: "f-degraded",
        ServiceState.HEALTHY: "f-up",
    }.get(state.was)
    y = 28 - high // 2
    return [svg.element("rect", title, **place, y=y, height=high, class_=class_, fill=fill)]


def _width(band: Band) -> str:
    """Returns a visible width within the axis."""
    return svg.share(min(max(band.to - band.from_, THINNEST), 1 - band.from_), 1)


def _bar(band: Band, y: int, class_: str, height: int = 8, *, said: bool = True) -> Markup:
    title = [svg.title(band.said)] if said else []
    return svg.element(
        "rect",
        *title,
        class_=class_,
        x=svg.share(min(band.from_, 1 - THINNEST), 1),
        width=_width(band) if band.from_ < 1 - THINNEST else svg.share(THINNEST, 1),
        y=y,
        height=height,
    )


def _cuts(cuts: Sequence[Divider], height: int) -> list[Markup]:
    """Returns the dividers. Names that would overlap the previous one are omitted."""
    found = []
    free_from = 0.0
    for cut in cuts:
        x = svg.share(cut.at, 1)
        found.append(
            svg.element(
                "line", svg.title(cut.said), class_="lead", x1=x, x2=x, y1=HEAD + 4, y2=height
            )
        )
        if cut.at >= free_from:
            free_from = cut.at + NAME_APART
            at_edge = cut.at > 1 - NAME_APART
            found.append(
                svg.element(
                    "text",
                    cut.name,
                    class_="halo end" if at_edge else "halo",
                    x=svg.share(cut.at - 0.006 if at_edge else cut.at + 0.006, 1),
                    y=height - 8,
                )
            )
    return found


def _lane_line(at: float, class_: str, y1: int, y2: int) -> Markup:
    x = svg.share(at, 1)
    return svg.element("line", class_=class_, x1=x, x2=x, y1=y1, y2=y2)


def _tick(tick: Tick, height: int) -> Markup:
    # Labels at an edge extend inwards.
    class_ = "start" if tick.at < EDGE else "end" if tick.at > 1 - EDGE else "mid"
    class_ = f"{class_} wide" if tick.minor else class_
    return svg.element("text", tick.text, class_=class_, x=svg.share(tick.at, 1), y=height + 18)
