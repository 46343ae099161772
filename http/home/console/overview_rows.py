"""Rows and groups of the overview, formatted for the template."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

from markupsafe import Markup

from ....storage.core.instant import Instant
from ....storage.core.key import MonitorKey
from ...monitors.console.monitor_data import held_us
from ...monitors.console.project_statuses import MonitorData
from ...ui.formatting import NOTHING, count, coverage, milliseconds, number, percent
from ...ui.live_page import RENEWED_US
from ...ui.monitor_status import WORDS, MonitorStatusText
from ...ui.plots.heartbeat_strip import strip
from ...ui.time_slots import Axis, beats
from .overview_data import ThirtyDays


@dataclass(frozen=True, slots=True)
class MonitorItem:
    uid: str
    name: str
    state: MonitorStatusText
    word: str
    # Changes only if a new event is worth a highlight.
    stamp: str
    # Equal keys mean that the rows are equal.
    key: str
    strip: Markup
    latency: str
    availability: str
    coverage: str
    # Marks of its warnings.
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MonitorGroup:
    name: str
    note: str
    rows: list[MonitorItem]


def groups(
    watched: Sequence[MonitorData],
    page: Sequence[MonitorData],
    drawn: Mapping[str, MonitorItem],
    *,
    by_region: bool = False,
) -> list[MonitorGroup]:
    """Returns the rows of the list page by first tag or region. Notes count the whole group."""
    tallies: dict[str, Counter[MonitorStatusText]] = {}
    for item in watched:
        name = item.row.region if by_region else item.group
        tallies.setdefault(name, Counter())[item.state] += 1
    found: dict[str, list[MonitorItem]] = {}
    for item in page:
        name = item.row.region if by_region else item.group
        found.setdefault(name, []).append(drawn[str(item.row.uid)])
    other = "Other" if len(tallies) > 1 else ""
    return [
        MonitorGroup(name or other, size_note(tallies[name]), rows) for name, rows in found.items()
    ]


def size_note(tally: Mapping[MonitorStatusText, int]) -> str:
    """Returns the size of a group and its monitors that are not up: 412 monitors, 2 down."""
    total = sum(tally.values())
    many = count(total, "monitor")
    if tally.get(MonitorStatusText.UP, 0) == total:
        return f"{many}, {'all ' if total > 1 else ''}up"
    parts = [
        f"{number(tally[state])} {WORDS[state]}"
        for state in MonitorStatusText
        if tally.get(state) and state is not MonitorStatusText.UP
    ]
    return ", ".join([many, *parts])


def rows(
    page: Iterable[MonitorData], courses: Mapping[MonitorKey, ThirtyDays], axis: Axis, now: Instant
) -> dict[str, MonitorItem]:
    return {str(item.row.uid): _row(item, courses[item.key], axis, now) for item in page}


def row_key(item: MonitorData, now: Instant) -> str:
    """Returns the key of the row: it changes with all that the row shows.

    A change by the passing of time or by a late result changes the key within RENEWED_US.
    """
    standing = item.standing
    newest = standing and (standing.last_at, standing.status, standing.since)
    said = (item.state, item.row.revision, newest, item.warnings, now // RENEWED_US)
    return f"{crc32(repr(said).encode()):08x}"


def _row(item: MonitorData, course: ThirtyDays, axis: Axis, now: Instant) -> MonitorItem:
    row, standing, state = item.row, item.standing, item.state
    shown_beats = beats(course.course, axis, now, held_us=held_us(row))
    last_up = standing.last_up if standing else None
    availability = course.measured.split.availability() if course.sealed else None
    return MonitorItem(
        str(row.uid),
        row.name,
        state,
        WORDS[state],
        stamp=f"{state} {last_up} {' '.join(item.warnings.words)}".rstrip(),
        key=row_key(item, now),
        strip=strip(shown_beats, "Last hour in slots of 2 min"),
        latency=_latency(item),
        availability=percent(availability, course.measured.total)
        if availability is not None
        else NOTHING,
        coverage=_coverage(state, course),
        warnings=item.warnings.words,
    )


def _latency(item: MonitorData) -> str:
    standing = item.standing
    if item.row.type == "push" or standing is None or item.state is MonitorStatusText.PENDING:
        return ""
    if (
        item.state not in (MonitorStatusText.UP, MonitorStatusText.DOWN)
        or standing.latency_ms is None
    ):
        return NOTHING
    if not standing.last_up:
        return (standing.msg or "failed").partition(" ")[0].replace("_", " ")
    return milliseconds(standing.latency_ms)


def _coverage(state: MonitorStatusText, course: ThirtyDays) -> str:
    if state is MonitorStatusText.PAUSED:
        return "paused"
    if not course.sealed:
        return "no data yet"
    return coverage(course.measured.split.coverage())
