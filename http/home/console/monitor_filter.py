"""Filter and order of the list of monitors. The query string is the whole state of the list."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

import msgspec

from ...monitors.console.project_statuses import MonitorData
from ...monitors.form.kind_cards import kind_name
from ...ui.facets import Choice, Facet, facet_of
from ...ui.monitor_status import WORDS, MonitorStatusText

ROWS_OF_PAGE: Final = 50
_WORST_FIRST: Final = (
    MonitorStatusText.DOWN,
    MonitorStatusText.UNKNOWN,
    MonitorStatusText.PENDING,
    MonitorStatusText.MAINTENANCE,
    MonitorStatusText.UP,
    MonitorStatusText.PAUSED,
)
SORTS: Final[Mapping[str, str]] = {
    "": "Worst first",
    "name": "Name",
    "-latency": "Latency, slowest first",
    "uptime": "30 days, lowest first",
    "-created": "Newest first",
}


class MonitorListQuery(msgspec.Struct, frozen=True):
    """Facets are lists, each value also comma-separated: `?status=down,unknown&tag=checkout`."""

    status: list[str] = []
    type: list[str] = []
    tag: list[str] = []
    region: list[str] = []
    q: str = ""
    sort: str = ""
    page: int = 1
    # Monitors that a live client shows.
    shown: list[UUID] = []
    # Action in the background whose result the list shows.
    action: UUID | None = None


@dataclass(frozen=True, slots=True)
class MonitorFilter:
    """Chosen values. Values of one facet are alternatives; the facets apply together."""

    status: frozenset[str] = frozenset()
    type: frozenset[str] = frozenset()
    tag: frozenset[str] = frozenset()
    region: frozenset[str] = frozenset()
    q: str = ""
    sort: str = ""

    @property
    def is_empty(self) -> bool:
        return not (self.status or self.type or self.tag or self.region or self.q)

    def matches(self, item: MonitorData) -> bool:
        row = item.row
        words = self.q.lower()
        texts = (row.name, row.target, row.slug, *row.tags)
        return (
            (not self.status or item.state.value in self.status)
            and (not self.type or row.type in self.type)
            and (not self.tag or not self.tag.isdisjoint(row.tags))
            and (not self.region or row.region in self.region)
            and (not words or any(words in text.lower() for text in texts))
        )

    def query(self, **changes: Any) -> str:
        """Returns the query string of this filter. `changes` replace single values."""
        given: dict[str, Any] = {
            name: ",".join(sorted(getattr(self, name)))
            for name in ("status", "type", "tag", "region")
        }
        given |= {"q": self.q, "sort": self.sort}
        given |= changes
        return urlencode({name: value for name, value in given.items() if value})


def filter_of(query: MonitorListQuery) -> MonitorFilter:
    """Returns the filter of a query. An unknown status or sort order is ignored."""
    known = {state.value for state in MonitorStatusText}
    return MonitorFilter(
        status=_values(query.status) & known,
        type=_values(query.type),
        tag=_values(query.tag),
        region=_values(query.region),
        q=query.q.strip()[:200],
        sort=query.sort if query.sort in SORTS else "",
    )


def _values(given: Iterable[str]) -> frozenset[str]:
    return frozenset(part.strip() for text in given for part in text.split(",") if part.strip())


def facets(watched: Sequence[MonitorData], chosen: MonitorFilter) -> list[Facet]:
    """Returns the facets with counts over the whole project.

    Statuses are ordered worst first, other values by frequency.
    """
    tags = Counter(tag for item in watched for tag in item.row.tags)
    types = Counter(item.row.type for item in watched)
    regions = Counter(item.row.region for item in watched)
    states = Counter(item.state for item in watched)
    return [
        Facet(
            "status",
            "Status",
            [
                Choice(one.value, WORDS[one].capitalize(), states[one], one.value in chosen.status)
                for one in _WORST_FIRST
                if states[one] or one.value in chosen.status
            ],
            0,
        ),
        facet_of("type", "Type", types, chosen.type, kind_name),
        facet_of("tag", "Tag", tags, chosen.tag, str),
        facet_of("region", "Region", regions, chosen.region, str),
    ]


@dataclass(frozen=True, slots=True)
class Ordering:
    """Order of the list. `uptime` maps monitors to their availability of 30 days, if known."""

    sort: str
    uptime: Mapping[Any, float] = field(default_factory=dict)

    def ordered(self, items: Iterable[MonitorData]) -> list[MonitorData]:
        """Returns the monitors in order. Monitors without the value of the order are last."""
        found = sorted(items, key=lambda item: (item.row.name.lower(), item.row.id))
        match self.sort:
            case "-latency":
                found.sort(key=lambda item: -_latency(item))
            case "uptime":
                found.sort(key=lambda item: self.uptime.get(item.key, 2.0))
            case "-created":
                found.sort(key=lambda item: -item.row.id)
            case "":
                found.sort(key=lambda item: _WORST_FIRST.index(item.state))
        return found


def _latency(item: MonitorData) -> int:
    standing = item.standing
    shows = item.state in (MonitorStatusText.UP, MonitorStatusText.DOWN)
    if not shows or standing is None or standing.latency_ms is None or not standing.last_up:
        return -1
    return standing.latency_ms
