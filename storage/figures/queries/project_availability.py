"""Time of all monitors of a project, from hours and days and never from results.

Good and bad time are summed over the monitors. Composites are excluded, because their children
would count twice. The range ends where the hours of every region are rolled up.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ...core.instant import DAY, HOUR, Instant
from ...core.sli import Split
from ...core.time_span import TimeSpan
from ...engine.pools import Tx
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
_FIGURED = """
select min(s.rolled_up_through), (select min(t.from_at) from monitors b
    join monitor_terms t on t.org = b.org and t.monitor = b.id
  where b.org = %(org)s and b.project = %(project)s)
from monitors m join shards s on s.id = m.shard
where m.org = %(org)s and m.project = %(project)s and m.type <> 'composite'
"""


@dataclass(frozen=True, slots=True)
class ProjectEnd:
    """End and start of a project's hours. Both are None without monitors.

    `figured` is the instant up to which the hours are rolled up. `begun` is the first term of a
    monitor.
    """

    figured: Instant | None
    begun: Instant | None


async def select_end(tx: Tx, org: int, project: int) -> ProjectEnd:
    row = await tx.row(_FIGURED, org=org, project=project)
    return ProjectEnd(*row) if row is not None else ProjectEnd(None, None)


async def select_project_windows(
    tx: Tx, org: int, project: int, figured: Instant, windows_us: Sequence[int]
) -> list[MonitorTime]:
    """Returns windows of whole hours that end at `figured`."""
    return [
        await _sum(tx, org, project, TimeSpan(Instant(figured - window_us), figured))
        for window_us in windows_us
    ]


async def select_project_days(
    tx: Tx, org: int, project: int, figured: Instant, first: Instant
) -> dict[Instant, MonitorTime]:
    """Returns days in UTC since `first`. The last one ends at `figured`."""
    last = Instant(figured - figured % DAY)
    found = await _by_day(tx, "monitor_days", "day", org, project, TimeSpan(first, last))
    return found | await _by_day(
        tx, "monitor_hours", "hour", org, project, TimeSpan(max(first, last), figured)
    )


async def _sum(tx: Tx, org: int, project: int, within: TimeSpan) -> MonitorTime:
    first = Instant(within.from_ + (-within.from_) % DAY)
    last = Instant(within.until - within.until % DAY)
    if first >= last:
        return await _part(tx, "monitor_hours", "hour", org, project, within)
    parts = [
        await _part(tx, "monitor_hours", "hour", org, project, TimeSpan(within.from_, first)),
        await _part(tx, "monitor_days", "day", org, project, TimeSpan(first, last)),
        await _part(tx, "monitor_hours", "hour", org, project, TimeSpan(last, within.until)),
    ]
    splits = sum((part.split for part in parts), Split())
    return MonitorTime(splits, sum(part.up for part in parts), sum(part.total for part in parts))


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
