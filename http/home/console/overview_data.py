"""Data of the overview, read in one transaction: all statuses, and the visible rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ....storage.core.instant import HOUR, MINUTE, Instant
from ....storage.core.key import MonitorKey
from ....storage.engine.pools import Tx
from ....storage.figures.queries.availability import NOTHING, Days, add, select_days
from ....storage.figures.queries.monitor_time import MonitorTime
from ....storage.monitors.queries.monitors import (
    MonitorStatusRow,
    select_monitors_of_project,
    select_standings,
)
from ....storage.monitors.rows import MonitorRow
from ....storage.results.queries.console_results import (
    ResultTimeline,
    select_courses,
    select_maintenance,
)
from ....storage.scheduling.queries.region_list import select_regions
from ...ui.monitor_status import MonitorStatusText, shown
from ...ui.time_slots import Axis
from ...wire.route import Request

SLOTS = 30
SLOT_US = 2 * MINUTE
DAYS = 30


@dataclass(frozen=True, slots=True)
class MonitorData:
    """Monitor with its stored status and the status that is shown."""

    row: MonitorRow
    standing: MonitorStatusRow | None
    state: MonitorStatusText

    @property
    def key(self) -> MonitorKey:
        return self.row.key

    @property
    def group(self) -> str:
        return self.row.tags[0] if self.row.tags else ""


@dataclass(frozen=True, slots=True)
class ThirtyDays:
    """Figures and strip of a row."""

    course: ResultTimeline
    measured: MonitorTime
    begun: Instant | None
    sealed: bool


async def select_watched(ask: Request, tx: Tx) -> list[MonitorData]:
    """Returns all monitors of the project by group and name. Untagged monitors are last."""
    assert ask.scope is not None
    org, project = int(str(ask.scope.organization)), int(str(ask.scope.project))
    rows = await select_monitors_of_project(tx, org, project)
    keys = [row.key for row in rows]
    standings = await select_standings(tx, keys)
    maintenance = await select_maintenance(tx, keys, tx.now)
    found = [
        MonitorData(
            row,
            standings.get(key),
            shown(row, standings.get(key), maintenance.get(key, ()), tx.now),
        )
        for row, key in zip(rows, keys, strict=True)
    ]
    return sorted(found, key=lambda w: (not w.group, w.group.lower(), w.row.name.lower()))


def hour_axis(now: Instant) -> Axis:
    """Returns the last hour. Slots begin at even minutes, so that they do not shift on reload."""
    until = now - now % SLOT_US + SLOT_US
    return Axis(Instant(until - HOUR), SLOT_US, SLOTS)


async def select_courses_of(
    tx: Tx, watched: Sequence[MonitorData], axis: Axis
) -> Mapping[MonitorKey, ThirtyDays]:
    if not watched:
        return {}
    keys = [w.key for w in watched]
    courses = await select_courses(tx, keys, axis.from_at, axis.until, axis.step_us)
    days = await select_days(tx, {w.key: w.row.type for w in watched}, tx.now, DAYS)
    return {key: _course(courses[key], days[key]) for key in keys}


def _course(course: ResultTimeline, days: Days) -> ThirtyDays:
    total = NOTHING
    for _, measured in days.days:
        total = add(total, measured)
    sealed = days.watermark is not None and days.begun is not None and days.watermark > days.begun
    return ThirtyDays(course, total, days.begun, sealed)


async def select_silent_regions(ask: Request, tx: Tx) -> list[str]:
    """Returns regions without a live worker or agent."""
    return [
        name for name, live in await select_regions(tx, ask.context.options.regions) if not live
    ]
