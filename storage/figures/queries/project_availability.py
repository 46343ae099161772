"""Time of all monitors of a project: rolled-up hours and days, and the sealed time after them.

Good and bad time are summed over the monitors. Composites are excluded, because their children
would count twice. Each monitor counts up to its own watermark.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...core.instant import DAY, HOUR, Instant
from ...core.key import MonitorKey
from ...core.sli import Split
from ...core.time_span import TimeSpan
from ...engine.pools import Tx
from .availability import WindowTime, add, select_edges
from .monitor_time import MonitorTime

_US = "sum(good_us)::bigint, sum(bad_us)::bigint, sum(unknown_us)::bigint, sum(excluded_us)::bigint"
_OF = """
from monitors m join {table} t on t.org = m.org and t.monitor = m.id
where m.org = %(org)s and m.project = %(project)s and m.type <> 'composite'
  and t.{column} >= at(%(from_at)s) and t.{column} < at(%(until_at)s)
"""
_SUM = f"select {_US}, sum(up)::bigint, sum(total)::bigint {_OF}"
_BY_DAY = f"""
select date_trunc('day', t.{{column}}, 'UTC'), {_US}, sum(up)::bigint, sum(total)::bigint {_OF}
group by 1 order by 1
"""
_TYPES = """
select org, id, type from monitors
where org = %(org)s and project = %(project)s and type <> 'composite'
"""


@dataclass(frozen=True, slots=True)
class ProjectTime:
    """Time of a project's monitors. `begun` is their first term and `until` the highest watermark.

    Both are None without monitors.
    """

    begun: Instant | None
    until: Instant | None
    windows: Sequence[WindowTime] = ()
    days: Mapping[Instant, MonitorTime] = field(default_factory=dict)


async def select_project_windows(
    tx: Tx, org: int, project: int, windows_us: Sequence[int]
) -> ProjectTime:
    """Returns windows that end at the watermarks of the monitors.

    A window begins with the whole hour, its length before the highest watermark.
    """
    edges = await select_edges(tx, await _types(tx, org, project))
    if edges.rolled_up is None or edges.until is None:
        nothing = [WindowTime(MonitorTime.nothing(), None)] * len(windows_us)
        return ProjectTime(edges.begun, edges.until, nothing)
    starts = [Instant(_floor(edges.until - window_us, HOUR)) for window_us in windows_us]
    stored = await _stored(tx, org, project, min(starts), edges.rolled_up)
    windows = []
    for since in starts:
        total = MonitorTime.nothing()
        if since < edges.rolled_up:
            total = await _sum(tx, org, project, stored, since)
        for hours in edges.hours.values():
            for start, measured in hours.items():
                if start >= since:
                    total = add(total, measured)
        windows.append(WindowTime(total, since))
    return ProjectTime(edges.begun, edges.until, windows)


async def select_project_days(tx: Tx, org: int, project: int, first: Instant) -> ProjectTime:
    """Returns days in UTC since `first`. The last one ends at the watermarks of the monitors."""
    edges = await select_edges(tx, await _types(tx, org, project))
    if edges.rolled_up is None:
        return ProjectTime(edges.begun, edges.until)
    last = max(first, Instant(edges.rolled_up - edges.rolled_up % DAY))
    found = await _by_day(tx, "monitor_days", "day", org, project, TimeSpan(first, last))
    found |= await _by_day(
        tx, "monitor_hours", "hour", org, project, TimeSpan(last, edges.rolled_up)
    )
    for hours in edges.hours.values():
        for start, measured in hours.items():
            day = Instant(start - start % DAY)
            if day >= first:
                found[day] = add(found.get(day, MonitorTime.nothing()), measured)
    return ProjectTime(edges.begun, edges.until, days=found)


async def _types(tx: Tx, org: int, project: int) -> dict[MonitorKey, str]:
    rows = await tx.rows(_TYPES, org=org, project=project)
    return {MonitorKey((org, monitor)): kind for org, monitor, kind in rows}


@dataclass(frozen=True, slots=True)
class _Stored:
    """Days before `last`, and the time from then to `until`, which all windows share."""

    days: Mapping[Instant, MonitorTime]
    last: Instant
    rest: MonitorTime
    until: Instant


async def _stored(tx: Tx, org: int, project: int, from_at: Instant, rolled_up: Instant) -> _Stored:
    last = Instant(_floor(rolled_up, DAY))
    first = Instant(_floor(from_at + DAY - 1, DAY))
    days: Mapping[Instant, MonitorTime] = {}
    if first < last:
        days = await _by_day(tx, "monitor_days", "day", org, project, TimeSpan(first, last))
    rest = await _part(tx, "monitor_hours", "hour", org, project, TimeSpan(last, rolled_up))
    return _Stored(days, last, rest, rolled_up)


async def _sum(tx: Tx, org: int, project: int, stored: _Stored, since: Instant) -> MonitorTime:
    first = Instant(_floor(since + DAY - 1, DAY))
    if first >= stored.last:
        within = TimeSpan(since, stored.until)
        return await _part(tx, "monitor_hours", "hour", org, project, within)
    total = stored.rest
    for day, measured in stored.days.items():
        if day >= first:
            total = add(total, measured)
    head = TimeSpan(since, first)
    return add(total, await _part(tx, "monitor_hours", "hour", org, project, head))


def _floor(at: int, step: int) -> int:
    return at - at % step


async def _part(
    tx: Tx, table: str, column: str, org: int, project: int, within: TimeSpan
) -> MonitorTime:
    assert within.from_ % HOUR == within.until % HOUR == 0, "whole hours"
    query = _SUM.replace("{table}", table).replace("{column}", column)
    row = await tx.row(query, org=org, project=project, from_at=within.from_, until_at=within.until)
    assert row is not None, "a sum is one row"
    return _measured(row)


async def _by_day(
    tx: Tx, table: str, column: str, org: int, project: int, within: TimeSpan
) -> dict[Instant, MonitorTime]:
    query = _BY_DAY.replace("{table}", table).replace("{column}", column)
    rows = await tx.rows(
        query, org=org, project=project, from_at=within.from_, until_at=within.until
    )
    return {day: _measured(rest) for day, *rest in rows}


def _measured(row: Sequence[int | None]) -> MonitorTime:
    good, bad, unknown, excluded, up, total = (value or 0 for value in row)
    return MonitorTime(Split(good, bad, unknown, excluded), up, total)
