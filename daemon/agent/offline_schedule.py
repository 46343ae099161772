"""Offline schedule: definitions of the monitors whose jobs this agent received.

While disconnected, the agent runs the newest claimable window of each monitor once. The definitions
contain secrets, so they are only in memory and expire. Pure: instants are µs since the epoch and
arguments.
"""

from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from ...probes.check.check import Check
from ...probes.check.cron_schedule import CronSchedule
from ...probes.check.monitor_spec import MonitorType

# Further monitors run while connected, but not offline.
MONITORS_MOST: Final = 10_000
# A window can begin until the end of its interval, and at most for this time.
CLAIMABLE_US_MOST: Final = 120_000_000
# While connected, a monitor without jobs for this time is no longer assigned to this agent.
UNSEEN_INTERVALS: Final = 10
UNSEEN_US_LEAST: Final = 600_000_000


@dataclass(frozen=True, slots=True)
class KnownCheck:
    """Definition of a monitor, due at `anchor + k * interval` or by a schedule. Durations are µs.

    With a schedule, `interval` is the shortest distance of its due instants, at most a day.
    """

    monitor: UUID
    revision: int
    anchor: int
    interval: int
    timeout: int
    check: Check
    schedule: CronSchedule | None = None

    def claimable_until(self, due: int) -> int:
        return due + min(self.interval, CLAIMABLE_US_MOST)

    def newest_due(self, now: int) -> int:
        """Returns the last due instant up to `now`. Before the first it is less than the anchor."""
        if self.schedule is not None:
            return self.schedule.last_through(now)
        return self.anchor + (now - self.anchor) // self.interval * self.interval

    def next_due(self, now: int) -> int:
        """Returns the first due instant after `now`."""
        if self.schedule is not None:
            return self.schedule.next_after(now)
        return max(self.newest_due(now) + self.interval, self.anchor)

    @property
    def longest(self) -> int:
        """Longest distance of two due instants."""
        return self.interval if self.schedule is None else self.schedule.longest_us


@dataclass(slots=True)
class _Known:
    definition: KnownCheck
    seen_at: int
    # Newest window that was taken, from the server or offline.
    through: int
    # Taken windows that the server could still assign, with the revision of the run.
    taken: dict[int, int] = field(default_factory=dict)


class OfflineSchedule:
    """Known monitors and their windows.

    A window is identified by monitor and due instant. It is run once per revision, whether the
    server or this schedule starts it, unless it is given back.
    """

    def __init__(self) -> None:
        self._monitors: dict[UUID, _Known] = {}
        # Total time with a connection. Unseen monitors expire by this time.
        self._connected_us = 0

    def __len__(self) -> int:
        return len(self._monitors)

    def learn(self, definition: KnownCheck) -> None:
        """Stores the definition of a received job. Canaries are skipped: they never run offline."""
        if definition.check.type == MonitorType.ASYNC_CANARY:
            return
        known = self._monitors.get(definition.monitor)
        if known is None:
            if len(self._monitors) < MONITORS_MOST:
                before = definition.anchor - definition.interval
                self._monitors[definition.monitor] = _Known(
                    definition, self._connected_us, through=before
                )
            return
        known.seen_at = self._connected_us
        if definition.revision >= known.definition.revision:
            known.definition = definition

    def take(self, definition: KnownCheck, due: int, now: int) -> bool:
        """Takes a window that the server assigned. Returns whether to run it.

        Returns False if this revision's run of it was already started.
        """
        known = self._monitors.get(definition.monitor)
        if known is None:
            return True
        if known.taken.get(due) == definition.revision:
            return False
        self._note(known, due, definition.revision, now)
        return True

    def give_back(self, monitor: UUID, due: int) -> None:
        """Releases a window without a result, so that the server can assign it again."""
        known = self._monitors.get(monitor)
        if known is not None:
            known.taken.pop(due, None)

    def claim_due(self, now: int) -> list[tuple[KnownCheck, int]]:
        """Takes and returns the windows to run offline, each with its due instant."""
        found = []
        for known in self._monitors.values():
            definition = known.definition
            due = definition.newest_due(now)
            if due > known.through and now < definition.claimable_until(due):
                self._note(known, due, definition.revision, now)
                found.append((definition, due))
        return sorted(found, key=lambda item: item[1])

    def next_due(self, now: int) -> int | None:
        """Returns when `claim_due` has the next window, or None without monitors."""
        return min(
            (known.definition.next_due(now) for known in self._monitors.values()),
            default=None,
        )

    def pass_connected(self, span: int) -> int:
        """Adds connected time, and returns the number of monitors that expired by it."""
        self._connected_us += span
        gone = [
            monitor
            for monitor, known in self._monitors.items()
            if self._connected_us - known.seen_at
            >= max(known.definition.longest * UNSEEN_INTERVALS, UNSEEN_US_LEAST)
        ]
        for monitor in gone:
            del self._monitors[monitor]
        return len(gone)

    def clear(self) -> int:
        """Removes all monitors, and returns their number."""
        count = len(self._monitors)
        self._monitors.clear()
        return count

    @staticmethod
    def _note(known: _Known, due: int, revision: int, now: int) -> None:
        known.through = max(known.through, due)
        for old in [old for old in known.taken if old + 2 * CLAIMABLE_US_MOST < now]:
            del known.taken[old]
        known.taken[due] = revision
