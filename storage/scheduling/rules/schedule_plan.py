"""The plan of one shard: its monitors, and which of their windows are due next.

An edit is applied as a delta: the caller reads the monitors that it names again and replaces them.
An edit can be applied twice, or after a later one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ...core.instant import Instant
from ...core.time_span import TimeSpan
from .due_queue import Timetable
from .maintenance_window import withholds
from .run_batch import DueWindow
from .run_schedule import ResultMode, ScheduleTerm


@dataclass(frozen=True, slots=True)
class PlannedMonitor:
    """`terms` are those from the one in force at the cursor on."""

    org: int
    manner: ResultMode
    is_canary: bool
    terms: Sequence[ScheduleTerm]
    maintenance: Sequence[TimeSpan] = ()


@dataclass(slots=True)
class SchedulePlan:
    """`edits_through` is the newest edit up to which all are applied; `applied_early` are later
    ones that are applied too."""

    shard: int
    region: str
    timetable: Timetable
    monitors: dict[int, PlannedMonitor]
    edits_through: int
    applied_early: set[int] = field(default_factory=set)

    @classmethod
    def of(
        cls,
        shard: int,
        region: str,
        after: Instant,
        monitors: dict[int, PlannedMonitor],
        edits_through: int,
    ) -> "SchedulePlan":
        terms = {key: monitor.terms for key, monitor in monitors.items()}
        return cls(shard, region, Timetable(shard, after, terms), monitors, edits_through)

    @property
    def reserved_through(self) -> Instant:
        """The cursor of the plan. After a reservation that failed it is ahead of the database's."""
        return self.timetable.reserved_through

    def replace(self, named: Iterable[int], found: dict[int, PlannedMonitor]) -> None:
        """Puts the monitors found in place of those named. The others named are gone."""
        for key in named:
            monitor = found.get(key)
            if monitor is None:
                self.monitors.pop(key, None)
                self.timetable.drop(key)
            else:
                self.monitors[key] = monitor
                self.timetable.put(key, monitor.terms)

    def take(self, through: Instant) -> list[DueWindow]:
        """The windows due after the cursor and at or before `through`; moves the cursor there."""
        found = []
        for key, window in self.timetable.take(through):
            monitor = self.monitors[key]
            spans = monitor.maintenance
            off = bool(spans) and withholds(window, monitor.manner, spans)
            found.append(
                DueWindow(monitor.org, key, monitor.manner, window, off, monitor.is_canary)
            )
        return found
