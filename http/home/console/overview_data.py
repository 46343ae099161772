"""Timelines and figures of the monitors that a list shows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ....storage.core.instant import HOUR, MINUTE, Instant
from ....storage.core.key import MonitorKey
from ....storage.engine.pools import Tx
from ....storage.figures.queries.availability import select_sums
from ....storage.figures.queries.monitor_time import MonitorTime
from ....storage.results.queries.console_results import (
    ResultTimeline,
    select_courses,
)
from ...monitors.console.project_statuses import MonitorData
from ...ui.time_slots import Axis

SLOTS = 30
SLOT_US = 2 * MINUTE
DAYS = 30


@dataclass(frozen=True, slots=True)
class ThirtyDays:
    """Figures and strip of a row."""

    course: ResultTimeline
    measured: MonitorTime
    sealed: bool


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
    sums = await select_sums(tx, {w.key: w.row.type for w in watched}, tx.now, DAYS)
    return {key: ThirtyDays(courses[key], sums[key].measured, sums[key].is_sealed) for key in keys}
