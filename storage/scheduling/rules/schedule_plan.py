"""Plan of one shard: its monitors and their next windows.

An edit is applied as a delta: the caller reads the edited monitors again and replaces them.
Applying an edit twice, or after a later one, is harmless.
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
    """Monitor of a plan. `terms` begin with the term that is in force at the cursor."""

    org: int
    manner: ResultMode
    is_canary: bool
    terms: Sequence[ScheduleTerm]
    maintenance: Sequence[TimeSpan] = ()


@dataclass(slots=True)
class SchedulePlan:
    """Monitors and timetable of one shard.

    All edits up to `edits_through` are applied. `applied_early` lists later edits that are applied
    too.
    """

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
        """Returns the cursor of the plan, which is ahead of the database after a failed commit."""
        return self.timetable.reserved_through

    def replace(self, named: Iterable[int], found: dict[int, PlannedMonitor]) -> None:
        """Replaces the named monitors by those in `found` and removes the others of them."""
        for key in named:
            monitor = found.get(key)
            if monitor is None:
                self.monitors.pop(key, None)
                self.timetable.drop(key)
            else:
                self.monitors[key] = monitor
                self.timetable.put(key, monitor.terms)

    def take(self, through: Instant) -> list[DueWindow]:
        """Returns the windows due after the cursor and up to `through`, and moves the cursor."""
        found = []
        for key, window in self.timetable.take(through):
            monitor = self.monitors[key]
            spans = monitor.maintenance
            off = bool(spans) and withholds(window, monitor.manner, spans)
            found.append(
                DueWindow(monitor.org, key, monitor.manner, window, off, monitor.is_canary)
            )
        return found
