"""Heartbeat strip: one slot per run or group of runs. Failures are taller than successes."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from itertools import groupby
from typing import TypeVar

from markupsafe import Markup

from . import svg

HEIGHT = 18
SLOT = 10
# Low hatch in the definitions of the page.
EARLY = "#early"
Kind = TypeVar("Kind", bound=StrEnum)


class HeartbeatSlot(StrEnum):
    """State of a slot. Each value is a CSS class."""

    UP = "b-up"
    FAILED = "b-failed"
    NONE = "b-none"
    MAINTENANCE = "b-maint"
    PAUSED = "b-paused"
    # Before the creation of the monitor: no run was due.
    BEFORE = "b-before"
    # In the future: not drawn.
    AWAY = "b-away"


_SAID = {
    HeartbeatSlot.UP: "up",
    HeartbeatSlot.FAILED: "failed",
    HeartbeatSlot.NONE: "no result",
    HeartbeatSlot.MAINTENANCE: "in maintenance",
    HeartbeatSlot.PAUSED: "paused",
    HeartbeatSlot.BEFORE: svg.BEFORE_SAID,
}
_GAPS = (HeartbeatSlot.NONE, HeartbeatSlot.BEFORE)


def strip(
    beats: Sequence[HeartbeatSlot],
    label: str,
    titled: Callable[[HeartbeatSlot, int, int], str] | None = None,
) -> Markup:
    """Returns the strip. `titled` maps (beat, first, after last) to the hover text."""
    runs = stretches(beats)
    drawn = [
        _run(beat, first, after, titled(beat, first, after) if titled else "")
        for beat, first, after in runs
        if beat not in _GAPS and beat is not HeartbeatSlot.AWAY
    ]
    gaps = [
        _gap(beat, first, after, len(beats), titled(beat, first, after) if titled else "")
        for beat, first, after in runs
        if beat in _GAPS
    ]
    said = f"{label}: {plot_text(beats)}"
    # A list has up to 100 strips: the style sheet has their height, and the layer their size.
    box = f"0 0 {len(beats) * SLOT} {HEIGHT}"
    layer = svg.element("svg", *drawn, viewBox=box, preserveAspectRatio="none")
    return svg.element(
        "svg",
        *([layer] if drawn else []),
        *gaps,
        class_="beat",
        role="img",
        aria_label=said,
    )


def plot_text(beats: Sequence[HeartbeatSlot]) -> str:
    """Returns the number of slots of each state as text."""
    parts = [f"{beats.count(beat)} {word}" for beat, word in _SAID.items() if beat in beats]
    return ", ".join(parts) or "no runs yet"


def slot_text(beat: HeartbeatSlot, many: int) -> str:
    return f"{many} {_SAID.get(beat, '')}".strip()


def stretches(kinds: Sequence[Kind]) -> list[tuple[Kind, int, int]]:
    """Returns (kind, first, after last) of merged equal neighbours, in order."""
    found = []
    at = 0
    for kind, group in groupby(kinds):
        many = len(list(group))
        found.append((kind, at, at + many))
        at += many
    return found


def _gap(beat: HeartbeatSlot, first: int, after: int, many: int, title: str) -> Markup:
    place = {
        "x": svg.share(first, many) if first else None,
        "width": svg.share(after - first, many),
    }
    told = [svg.title(title)] if title else []
    if beat is HeartbeatSlot.BEFORE:
        return svg.element("use", *told, href=EARLY, **place)
    return svg.element("rect", *told, fill=svg.HATCH, **place, y=4, height=10)


def _run(beat: HeartbeatSlot, first: int, after: int, title: str) -> Markup:
    """Returns a dashed line with one dash per slot. The dash pattern restarts with each line."""
    start, length = first * SLOT + 1, (after - first) * SLOT - 2
    middle = HEIGHT // 2
    children = [svg.title(title)] if title else []
    return svg.element("path", *children, class_=beat.value, d=f"M{start} {middle}h{length}")
