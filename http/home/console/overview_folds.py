"""Monitors of a large project as folded groups. Each group lists its monitors that are not up."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode
from zlib import crc32

from markupsafe import Markup

from ...monitors.console.project_statuses import MonitorData
from ...ui.formatting import count
from ...ui.monitor_status import WORDS, MonitorStatusText
from ...ui.plots import svg
from .overview_rows import MonitorItem, size_note

# A project with more monitors is folded.
FOLDED_ABOVE: Final = 100
GROUPS_MOST: Final = 60
ROWS_OF_GROUP: Final = 10
ROWS_MOST: Final = 50
OPEN_MOST: Final = 5
FINE: Final = frozenset(
    {MonitorStatusText.UP, MonitorStatusText.PAUSED, MonitorStatusText.MAINTENANCE}
)
_COLORS: Final[Mapping[MonitorStatusText, str]] = {
    MonitorStatusText.DOWN: "f-down",
    MonitorStatusText.UNKNOWN: "f-unknown",
    MonitorStatusText.PENDING: "f-base",
    MonitorStatusText.MAINTENANCE: "f-maint",
    MonitorStatusText.UP: "f-up",
    MonitorStatusText.PAUSED: "f-base",
}


@dataclass(frozen=True, slots=True)
class OverviewGroup:
    """Group of monitors, with those to list. An empty name is that of monitors without a tag."""

    name: str
    items: Sequence[MonitorData]
    # The first monitors that are not up, and how many more there are.
    listed: Sequence[MonitorData]
    more: int


@dataclass(frozen=True, slots=True)
class MonitorFold:
    id: str
    name: str
    mark: MonitorStatusText
    word: str
    note: str
    share: Markup
    path: str
    rows: Sequence[MonitorItem]
    more: str
    is_open: bool


@dataclass(frozen=True, slots=True)
class OverviewFolds:
    folds: Sequence[MonitorFold]
    # Groups that are not shown.
    further: int


def grouped(watched: Sequence[MonitorData], *, by_region: bool) -> list[OverviewGroup]:
    """Returns the groups by first tag or by region, in order of their names.

    Together they list at most ROWS_MOST monitors, the worst of each group first.
    """
    found: dict[str, list[MonitorData]] = {}
    for item in watched:
        found.setdefault(item.row.region if by_region else item.group, []).append(item)
    groups, left = [], ROWS_MOST
    order = list(MonitorStatusText)
    for name in sorted(found, key=lambda name: (not name, name.lower())):
        bad = [item for item in found[name] if item.state not in FINE]
        bad.sort(key=lambda item: order.index(item.state))
        listed = bad[: min(ROWS_OF_GROUP, left)]
        left -= len(listed)
        groups.append(OverviewGroup(name, found[name], listed, len(bad) - len(listed)))
    return groups


def listed(groups: Sequence[OverviewGroup]) -> list[MonitorData]:
    return [item for group in groups[:GROUPS_MOST] for item in group.listed]


def folds(
    groups: Sequence[OverviewGroup],
    drawn: Mapping[str, MonitorItem],
    monitors: str,
    *,
    by_region: bool,
) -> OverviewFolds:
    """Returns the groups as they are shown. `monitors` is the path of the list of monitors."""
    found: list[MonitorFold] = []
    opened = 0
    for group in groups[:GROUPS_MOST]:
        tally = Counter(item.state for item in group.items)
        is_open = bool(tally[MonitorStatusText.DOWN]) and opened < OPEN_MOST
        opened += is_open
        mark = next(state for state in MonitorStatusText if tally[state])
        filtered = {"region" if by_region else "tag": group.name}
        found.append(
            MonitorFold(
                f"g-{crc32(group.name.encode()):08x}",
                group.name,
                mark,
                WORDS[mark],
                size_note(tally),
                _share(tally),
                f"{monitors}?{urlencode(filtered)}" if group.name else monitors,
                [drawn[str(item.row.uid)] for item in group.listed],
                f"{count(group.more, 'more monitor')} not up" if group.more else "",
                is_open,
            )
        )
    return OverviewFolds(found, max(len(groups) - GROUPS_MOST, 0))


def _share(tally: Mapping[MonitorStatusText, int]) -> Markup:
    """Returns a bar of the statuses by their number. A status with monitors is always visible."""
    total = sum(tally.values())
    parts, left = [], 0.0
    for state in MonitorStatusText:
        if not tally.get(state):
            continue
        width = max(100 * tally[state] / total, 1.2)
        parts.append(
            svg.element(
                "rect",
                class_=_COLORS[state],
                x=f"{svg.trimmed(min(left, 98.8))}%",
                width=f"{svg.trimmed(width)}%",
                height=8,
            )
        )
        left += width
    return svg.element("svg", *parts, class_="share wide", aria_hidden="true")
