"""Rows and groups of the overview, formatted for the template."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ....storage.core.instant import Instant
from ....storage.core.key import MonitorKey
from ....storage.monitors.rules.monitor_state import MonitorStatus
from ...monitors.console.monitor_data import held_us
from ...ui.formatting import NOTHING, Moment, ago, count, coverage, milliseconds, percent
from ...ui.monitor_status import WORDS, MonitorStatusText
from ...ui.plots.heartbeat_strip import strip
from ...ui.time_slots import Axis, beats
from .overview_data import MonitorData, ThirtyDays

ATTENTION_MOST = 10


@dataclass(frozen=True, slots=True)
class MonitorItem:
    uid: str
    name: str
    state: MonitorStatusText
    word: str
    # Changes only if a new event is worth a highlight.
    stamp: str
    strip: Markup
    latency: str
    availability: str
    coverage: str


@dataclass(frozen=True, slots=True)
class MonitorGroup:
    name: str
    note: str
    rows: list[MonitorItem]


@dataclass(frozen=True, slots=True)
class AttentionItem:
    """Monitor that needs attention, with the reason."""

    uid: str
    name: str
    state: MonitorStatusText
    word: str
    since: Moment | None
    why: str


def groups(
    watched: Sequence[MonitorData], page: Sequence[MonitorData], drawn: Mapping[str, MonitorItem]
) -> list[MonitorGroup]:
    """Returns the rows of the list page by first tag. Notes count the whole group."""
    tallies: dict[str, Counter[MonitorStatusText]] = {}
    for item in watched:
        tallies.setdefault(item.group, Counter())[item.state] += 1
    found: dict[str, list[MonitorItem]] = {}
    for item in page:
        found.setdefault(item.group, []).append(drawn[str(item.row.uid)])
    other = "Other" if len(tallies) > 1 else ""
    return [MonitorGroup(name or other, _note(tallies[name]), rows) for name, rows in found.items()]


def _note(tally: Counter[MonitorStatusText]) -> str:
    many = count(tally.total(), "monitor")
    if tally[MonitorStatusText.UP] == tally.total():
        return f"{many}, {'all ' if tally.total() > 1 else ''}up"
    parts = [
        f"{tally[s]} {WORDS[s]}"
        for s in MonitorStatusText
        if tally[s] and s is not MonitorStatusText.UP
    ]
    return ", ".join([many, *parts])


def rows(
    page: Iterable[MonitorData], courses: Mapping[MonitorKey, ThirtyDays], axis: Axis, now: Instant
) -> dict[str, MonitorItem]:
    return {str(item.row.uid): _row(item, courses[item.key], axis, now) for item in page}


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
        stamp=f"{state} {last_up}",
        strip=strip(shown_beats, "Last hour in slots of 2 min"),
        latency=_latency(item),
        availability=percent(availability, course.measured.total)
        if availability is not None
        else NOTHING,
        coverage=_coverage(state, course),
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


def concerns(watched: Iterable[MonitorData], now: Instant) -> list[AttentionItem]:
    """Returns down monitors, then unknown ones, newest first."""
    found = [w for w in watched if w.state in (MonitorStatusText.DOWN, MonitorStatusText.UNKNOWN)]
    found.sort(key=lambda w: (w.state is not MonitorStatusText.DOWN, -_since(w)))
    return [_concern(item, now) for item in found]


def _since(item: MonitorData) -> int:
    standing = item.standing
    if standing is None:
        return 0
    return standing.since if item.state is MonitorStatusText.DOWN else standing.last_at or 0


def _concern(item: MonitorData, now: Instant) -> AttentionItem:
    since = _since(item)
    return AttentionItem(
        str(item.row.uid),
        item.row.name,
        item.state,
        WORDS[item.state],
        ago(Instant(since), now) if since else None,
        why(item, now),
    )


def why(item: MonitorData, now: Instant) -> str:
    """Returns the reason of the down or unknown state in one line."""
    standing = item.standing
    if standing is None or standing.last_at is None:
        return ""
    if item.state is MonitorStatusText.DOWN:
        many = standing.failures_in_row
        return f"{standing.msg or 'failed'}, {count(many, 'consecutive failure')}."
    if standing.status == MonitorStatus.PENDING and not standing.last_up:
        return (
            f"{standing.msg or 'failed'}; down after {item.row.failure_threshold}"
            " consecutive failures."
        )
    newest = ago(standing.last_at, now).text
    return f"The last result, from {newest}, is stale; current status is unknown."
